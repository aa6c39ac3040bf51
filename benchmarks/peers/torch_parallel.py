"""A GPT-2 in PyTorch on several GPUs, tensor parallel: what our model on several GPUs is compared with.

    python -m benchmarks.peers.torch_parallel results.json --devices 2 --model gpt2-xl

One process a GPU. Heads, the hidden layer and the vocabulary are split; the two sums of a layer go through NCCL or
through the one-shot or two-shot sums of PyTorch's symmetric memory. Every pass is a CUDA graph. The same model on one
GPU is measured beside it, and the logits of both are compared first, in a model of two layers.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from conformance.results.stats import median
from gpt.config import GPTConfig, shared

from ..rows import by_rows
from .pytorch import Tensor, functional, torch
from .torch_collectives import SHOTS
from .torch_gpt import padded

SIZES = {"gpt2": (12, 12, 768), "gpt2-medium": (24, 16, 1024), "gpt2-large": (36, 20, 1280), "gpt2-xl": (48, 25, 1600)}
FORWARD = ((1, 1024), (8, 1024))  # batch, tokens
DECODE = (1, 64)  # sequences, behind CONTEXT tokens each
CONTEXT = 1024
SAMPLES, WARM_UP = 15, 3
LATER_S = 120  # that a rank waits for another one
RELATIVE = 3e-2  # of the largest logit: two layers in bf16, with sums in another order
Reduce = Callable[[Tensor, Tensor], Tensor]  # a (B, T, K), weight (C, K): the sum over the ranks of a @ weight.T


@dataclass(frozen=True)
class Row:
    """`case`: "forward (8, 1024)" or "decode 64". `variant`: how sums are made; "one GPU" makes none. µs: the median,
    with its 95 % interval. `error`: why there is none."""

    case: str
    ranks: int
    variant: str
    us: float = 0.0
    low: float = 0.0
    high: float = 0.0
    error: str = ""


class Rank:
    """The part of one of `ranks` GPUs. All ranks draw the same weights, and keep their part."""

    def __init__(self, config: GPTConfig, rank: int, ranks: int, reduce: Reduce, seed: int = 1) -> None:
        self.config, self.ranks, self.reduce = config, ranks, reduce
        self._generator = torch.Generator("cuda").manual_seed(seed)
        c, size = config.n_embd, config.n_embd // config.n_head
        heads = shared(config.n_head, rank, ranks)
        hidden = shared(4 * c, rank, ranks)
        own = slice(heads.start * size, heads.stop * size)
        self.heads, self.size = len(heads), size
        width = padded(config.vocab_size, 128 * ranks) // ranks
        drawn = self._normal(config.vocab_size, c)  # the same numbers whatever the padding
        self.wte = functional.pad(drawn, (0, 0, 0, ranks * width - len(drawn)))
        self.vocabulary = self.wte[rank * width : (rank + 1) * width]
        self.first = rank * width
        self.wpe = self._normal(config.n_ctx, c)
        self.norm = (torch.ones(c, device="cuda", dtype=torch.bfloat16), self._normal(c))
        self.layers: list[dict[str, Any]] = []
        for _ in range(config.n_layer):
            qkv, bias = self._normal(3, c, c), self._normal(3, c)
            out, up, down = self._normal(c, c), self._normal(4 * c, c), self._normal(c, 4 * c)
            self.layers.append({
                "ln_1": (self.norm[0], self._normal(c)), "ln_2": (self.norm[0], self._normal(c)),
                "qkv": qkv[:, own].reshape(-1, c).contiguous(), "qkv_bias": bias[:, own].reshape(-1).contiguous(),
                "out": out[:, own].contiguous(), "out_bias": self._normal(c),
                "up": up[hidden.start : hidden.stop].clone(),
                "up_bias": self._normal(4 * c)[hidden.start : hidden.stop].contiguous(),
                "down": down[:, hidden.start : hidden.stop].contiguous(), "down_bias": self._normal(c),
            })  # fmt: skip

    def _normal(self, *shape: int) -> Tensor:
        drawn = torch.randn(shape, generator=self._generator, device="cuda", dtype=torch.float32)
        return (0.02 * drawn).to(torch.bfloat16)

    def _normed(self, x: Tensor, norm: tuple[Tensor, Tensor]) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:], *norm, self.config.eps)

    def _layer(self, x: Tensor, layer: dict[str, Any], attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
        """x (B, T, C); `attend` gets q, k, v (B, heads, T, D)."""
        batch, length, _ = x.shape
        made = functional.linear(self._normed(x, layer["ln_1"]), layer["qkv"], layer["qkv_bias"])
        q, k, v = made.view(batch, length, 3, self.heads, self.size).permute(2, 0, 3, 1, 4).unbind(0)
        attended = attend(q, k, v).transpose(1, 2).reshape(batch, length, -1)
        x = x + self.reduce(attended, layer["out"]) + layer["out_bias"]
        hidden = functional.linear(self._normed(x, layer["ln_2"]), layer["up"], layer["up_bias"])
        hidden = functional.gelu(hidden, approximate="tanh")
        return x + self.reduce(hidden, layer["down"]) + layer["down_bias"]

    def forward(self, tokens: Tensor) -> Tensor:
        """This rank's logits (B, T, V / R) of tokens (B, T)."""
        x = functional.embedding(tokens, self.wte) + self.wpe[: tokens.shape[1]]
        causal = functools.partial(functional.scaled_dot_product_attention, is_causal=True)
        for layer in self.layers:
            x = self._layer(x, layer, causal)
        return functional.linear(self._normed(x, self.norm), self.vocabulary)

    def cache(self, batch: int) -> list[tuple[Tensor, Tensor]]:
        shape = (batch, self.heads, CONTEXT, self.size)
        return [(self._normal(*shape), self._normal(*shape)) for _ in self.layers]

    def step(self, tokens: Tensor, caches: Sequence[tuple[Tensor, Tensor]], choose: Callable[[Tensor], Tensor]) -> None:
        """The next tokens of sequences whose cache the step fills, in place of `tokens` (B)."""
        x = (functional.embedding(tokens, self.wte) + self.wpe[CONTEXT - 1])[:, None]
        for layer, (keys, values) in zip(self.layers, caches, strict=True):

            def attend(q: Tensor, k: Tensor, v: Tensor, keys: Tensor = keys, values: Tensor = values) -> Tensor:
                keys[:, :, -1:] = k
                values[:, :, -1:] = v
                return functional.scaled_dot_product_attention(q, keys, values)

            x = self._layer(x, layer, attend)
        tokens.copy_(choose(functional.linear(self._normed(x[:, 0], self.norm), self.vocabulary)))


def reducers(group: Any) -> dict[str, Callable[[int], Reduce]]:
    """By variant, what makes a sum for parts of at most so many elements."""
    name = group.group.WORLD.group_name

    def by_nccl(_: int) -> Reduce:
        def reduce(a: Tensor, weight: Tensor) -> Tensor:
            part = functional.linear(a, weight)
            group.all_reduce(part)
            return part

        return reduce

    def by_shot(function: str, elements: int) -> Reduce:
        from torch.distributed import _symmetric_memory as memory  # pyright: ignore[reportMissingImports]

        buffer = memory.empty(elements, dtype=torch.bfloat16, device="cuda")
        memory.rendezvous(buffer, name)
        call = getattr(torch.ops.symm_mem, function)

        def reduce(a: Tensor, weight: Tensor) -> Tensor:
            rows = a.reshape(-1, a.shape[-1])
            part = buffer[: len(rows) * len(weight)]
            torch.mm(rows, weight.t(), out=part.view(len(rows), len(weight)))
            return call(part, "sum", name).view(*a.shape[:-1], len(weight))

        return reduce

    shots = {f"symmetric memory, {shot}": functools.partial(by_shot, function) for shot, function in SHOTS.items()}
    return {"NCCL": by_nccl, **shots}


def chooser(group: Any, model: Rank) -> Callable[[Tensor], Tensor]:
    """The likeliest token over all ranks: each one's value and place are gathered."""

    def choose(logits: Tensor) -> Tensor:
        best = logits.float().max(dim=-1)
        mine = torch.stack([best.values, (best.indices + model.first).float()])  # indices are exact in f32
        if model.ranks == 1:
            return mine[1].long()
        every = torch.empty(model.ranks, *mine.shape, device="cuda")
        group.all_gather_into_tensor(every, mine)
        rank = every[:, 0].argmax(dim=0, keepdim=True)
        return every[:, 1].gather(0, rank)[0].long()

    return choose


def _alone(a: Tensor, weight: Tensor) -> Tensor:
    return functional.linear(a, weight)


def _check(group: Any, config: GPTConfig, rank: int, ranks: int, reduce: Reduce) -> str:
    """How the logits of a model of two layers on all ranks differ from those on one GPU; empty if they agree."""
    small = replace(config, n_layer=2)
    tokens = torch.randint(config.vocab_size, (1, 64), device="cuda", generator=torch.Generator("cuda").manual_seed(2))
    part = Rank(small, rank, ranks, reduce).forward(tokens)
    whole = Rank(small, 0, 1, _alone).forward(tokens)
    first = rank * part.shape[-1]
    wanted = whole[..., first : first + part.shape[-1]]  # both are padded, and not to the same size
    part = part[..., : wanted.shape[-1]]
    worst = torch.tensor(
        [float((part.float() - wanted.float()).abs().max() / whole.float().abs().max())], device="cuda"
    )
    group.all_reduce(worst, group.ReduceOp.MAX)
    found = float(worst)
    return "" if found < RELATIVE else f"logits are off by {found:.2g} of the largest"


def _time(group: Any, run: Callable[[], object], ranks: int) -> list[float]:
    """Samples of a graph of one run, in µs: of each that of the rank with the shortest time, which began last."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    mine: list[float] = []
    for _ in range(WARM_UP + SAMPLES):
        if ranks > 1:
            group.barrier()
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        mine.append(1e3 * float(start.elapsed_time(end)))
    if ranks == 1:
        return mine[WARM_UP:]
    every: list[Any] = [None] * ranks
    group.all_gather_object(every, mine[WARM_UP:])
    return [min(each) for each in zip(*every, strict=True)]


def _row(case: str, ranks: int, variant: str, samples: Sequence[float]) -> Row:
    value, low, high = median(samples)
    return Row(case, ranks, variant, round(value, 1), round(low, 1), round(high, 1))


def _cases(group: Any, model: Rank) -> Iterator[tuple[str, list[float]]]:
    for batch, length in FORWARD:
        tokens = torch.randint(model.config.vocab_size, (batch, length), device="cuda")
        yield f"forward ({batch}, {length})", _time(group, lambda t=tokens: model.forward(t), model.ranks)
    for batch in DECODE:
        tokens = torch.zeros(batch, device="cuda", dtype=torch.long)
        caches = model.cache(batch)
        step = functools.partial(model.step, tokens, caches, chooser(group, model))
        yield f"decode {batch}", _time(group, step, model.ranks)
        del caches, step
        torch.cuda.empty_cache()


def _rank(rank: int, ranks: int, port: int, output: Path, config: GPTConfig, limit_s: float) -> None:
    began = time.perf_counter()
    torch.set_grad_enabled(False)
    torch.cuda.set_device(rank)
    group = torch.distributed
    group.init_process_group(
        "nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks,
        timeout=datetime.timedelta(seconds=LATER_S), device_id=torch.device("cuda", rank),
    )  # fmt: skip
    rows: list[Row] = []

    def keep(row: Row) -> None:
        rows.append(row)
        if rank == 0:
            print(row, flush=True)
            document = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(0), "config": asdict(config)}
            output.write_text(by_rows({**document, "rows": [asdict(each) for each in rows]}))

    elements = max(batch * length for batch, length in FORWARD) * config.n_embd
    for variant, make in reducers(group).items():
        over = torch.tensor([float(time.perf_counter() - began > limit_s)], device="cuda")
        group.all_reduce(over)  # all ranks or none
        if float(over):
            keep(Row("all", ranks, variant, error=f"not run: {limit_s:g} s were over"))
            continue
        try:
            reduce = make(elements)
            if wrong := _check(group, config, rank, ranks, reduce):
                keep(Row("two layers", ranks, variant, error=wrong))
                continue
            model = Rank(config, rank, ranks, reduce)
            for case, samples in _cases(group, model):
                keep(_row(case, ranks, variant, samples))
        except RuntimeError as error:
            keep(Row("all", ranks, variant, error=" ".join(str(error).split())[:200]))
            continue
        del model
        torch.cuda.empty_cache()
    group.barrier()
    if rank == 0:
        alone = Rank(config, 0, 1, _alone)
        for case, samples in _cases(group, alone):
            keep(_row(case, 1, "one GPU", samples))
    group.barrier()
    group.destroy_process_group()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.torch_parallel", description=__doc__)
    parser.add_argument("output", type=Path, help="a file of JSON")
    parser.add_argument("--devices", type=int, default=2, metavar="N", help="GPUs (default 2)")
    parser.add_argument("--model", choices=SIZES, default="gpt2-xl", help="default gpt2-xl")
    parser.add_argument("--limit", type=float, default=60.0, metavar="S", help="begin no variant after so many seconds")
    args = parser.parse_args(words)
    layers, heads, width = SIZES[args.model]
    config = GPTConfig(layers, heads, width, n_ctx=CONTEXT, vocab_size=50257)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(
        _rank, (args.devices, port, args.output, config, args.limit), nprocs=args.devices
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
