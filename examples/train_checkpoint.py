"""Train the small byte-level GPT in `gpt/checkpoint/` from plain text files, with PyTorch, on a GPU or a CPU.

    python examples/train_checkpoint.py --text kjv.txt alice.txt --out gpt/checkpoint

Each file is one document; a file named twice counts twice. The first fiftieth of all tokens is held out, to measure
with: so the first file is named once, and is longer than that. Paragraphs are separated by blank lines and unwrapped.
What the shipped checkpoint was trained on, and how to get it, stands in gpt/checkpoint/README.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from gpt.config import GPTConfig, preset
from gpt.parameters import weights

END_OF_TEXT = 256


class Linear(nn.Module):
    """x @ weight + bias with the weight stored (in, out), as GPT-2 stores it."""

    def __init__(self, inner: int, outer: int, std: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, outer) * std)
        self.bias = nn.Parameter(torch.zeros(outer))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class Block(nn.Module):
    def __init__(self, config: GPTConfig, dropout: float) -> None:
        super().__init__()
        width, out_std = config.n_embd, 0.02 / math.sqrt(2 * config.n_layer)
        self.n_head, self.dropout = config.n_head, dropout
        self.ln_1, self.ln_2 = nn.LayerNorm(width, config.eps), nn.LayerNorm(width, config.eps)
        self.attn = nn.ModuleDict({"c_attn": Linear(width, 3 * width, 0.02), "c_proj": Linear(width, width, out_std)})
        self.mlp = nn.ModuleDict({"c_fc": Linear(width, 4 * width, 0.02), "c_proj": Linear(4 * width, width, out_std)})

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C)
        batch, length, width = x.shape
        qkv = self.attn["c_attn"](self.ln_1(x)).view(batch, length, 3, self.n_head, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, H, T, D) each
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        attended = attended.transpose(1, 2).reshape(batch, length, width)
        x = x + functional.dropout(self.attn["c_proj"](attended), self.dropout, self.training)
        hidden = functional.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + functional.dropout(self.mlp["c_proj"](hidden), self.dropout, self.training)


class Model(nn.Module):
    """GPT-2 with Hugging Face's names of parameters."""

    def __init__(self, config: GPTConfig, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_ctx, config.n_embd)
        self.h = nn.ModuleList(Block(config, dropout) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, config.eps)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:  # (B, T) -> (B, T, V)
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        x = functional.dropout(x, self.dropout, self.training)
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T


def read_corpus(paths: list[Path]) -> tuple[np.ndarray, str]:
    """All documents as tokens (bytes, then the end of text), and the SHA-256 of the files' contents in order."""
    digest, documents = hashlib.sha256(), []
    for path in paths:
        raw = path.read_bytes()
        digest.update(raw)
        paragraphs = raw.decode("utf-8", "replace").replace("\r", "").split("\n\n")
        text = "\n".join(" ".join(p.split()) for p in paragraphs if p.strip())
        documents.append(np.array([*text.encode(), END_OF_TEXT], np.int64))
    return np.concatenate(documents), digest.hexdigest()


def batch(tokens: Tensor, size: int, length: int) -> tuple[Tensor, Tensor]:
    starts = torch.randint(len(tokens) - length - 1, (size, 1), device=tokens.device)
    window = tokens[starts + torch.arange(length + 1, device=tokens.device)]
    return window[:, :-1], window[:, 1:]


def loss_of(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    with torch.autocast(inputs.device.type, torch.bfloat16):
        logits = model(inputs)
    return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    config = preset(args.config)
    corpus, digest = read_corpus(args.text)
    tokens = torch.from_numpy(corpus).to(args.device)
    # The beginning of the first document: later ones may stand twice, and what is held out must not be seen.
    held_out, seen = tokens[: len(tokens) // 50], tokens[len(tokens) // 50 :]
    model = Model(config, args.dropout).to(args.device)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), fused=args.device != "cpu")
    step_model = torch.compile(model) if args.compile else model
    started = time.perf_counter()
    for step in range(args.steps):
        warm = min(1.0, (step + 1) / 200)
        rate = args.lr * warm * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / args.steps)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(step_model, *batch(seen, args.batch, config.n_ctx))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 500 == 0 or step == args.steps - 1:
            print(f"step {step:6d}  loss {loss.item():.4f}  {time.perf_counter() - started:.0f} s", flush=True)
    model.eval()
    with torch.no_grad():
        losses = [loss_of(model, *batch(held_out, args.batch, config.n_ctx)).item() for _ in range(20)]
    held_loss = sum(losses) / len(losses)
    print(f"held out: {held_loss:.4f} nats a byte, {held_loss / math.log(2):.3f} bits")
    state = {name: p.detach().float().cpu().numpy().astype(ml_dtypes.bfloat16) for name, p in model.named_parameters()}
    weights.save(args.out, config, state)
    record = {
        "config": args.config, "corpus_sha256": digest, "corpus_bytes": len(corpus), "steps": args.steps,
        "batch": args.batch, "seed": args.seed, "lr": args.lr, "dropout": args.dropout,
        "held_out_nats_per_byte": round(held_loss, 4), "torch": torch.__version__,
    }  # fmt: skip
    (args.out / "training.json").write_text(json.dumps(record, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, nargs="+", required=True, help="plain text files, UTF-8")
    parser.add_argument("--out", type=Path, required=True, help="folder for config.json and model.safetensors")
    parser.add_argument("--config", default="mini", help="a preset of gpt.config (default mini)")
    parser.add_argument("--steps", type=int, default=12000)
    parser.add_argument("--batch", type=int, default=128, help="sequences of n_ctx bytes a step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    args = parser.parse_args()
    if args.text[0] in args.text[1:]:
        parser.error(f"{args.text[0]} comes first, so its beginning is held out: it cannot come again")
    train(args)


if __name__ == "__main__":
    main()
