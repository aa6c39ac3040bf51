"""GPT-2 in PyTorch, written as PyTorch's users do. Our forward and decode are compared with it; in f32 it is also the
reference.

B sequences of T tokens, C = n_embd = H heads of D, V tokens in a vocabulary that may be padded to Vp, P positions in a
cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpt.config import GPTConfig

from .pytorch import Tensor, functional, nn, torch

NAME = ""  # before the name of each peer


def padded(vocab_size: int, multiple: int = 128) -> int:
    """The vocabulary's size, padded for PyTorch: with 50304 instead of GPT-2's 50257 the last product is much
    faster."""
    return -(-vocab_size // multiple) * multiple


class Linear(nn.Linear):
    """x @ weight.T + bias; `gelu`: with the tanh GELU, in one call where `fused`."""

    def gelu(self, x: Tensor, *, fused: bool) -> Tensor:
        if not fused:
            return functional.gelu(self(x), approximate="tanh")
        rows = x.reshape(-1, x.shape[-1])
        made = torch._addmm_activation(self.bias, rows, self.weight.t(), use_gelu=True)  # noqa: SLF001 - the one way to it
        return made.view(*x.shape[:-1], -1)


class Cache(NamedTuple):
    """Keys and values of each layer, (B, H, P, D). They are separate tensors: with views of one tensor, a compiler
    would copy all of it when a row is written."""

    k: Sequence[Tensor]
    v: Sequence[Tensor]


class Block(nn.Module):
    def __init__(self, config: GPTConfig, *, fused_gelu: bool) -> None:
        super().__init__()
        c = config.n_embd
        self.heads, self.fused_gelu = config.n_head, fused_gelu
        self.ln_1, self.ln_2 = nn.LayerNorm(c, config.eps), nn.LayerNorm(c, config.eps)
        self.attn = nn.ModuleDict({"c_attn": Linear(c, 3 * c), "c_proj": Linear(c, c)})
        self.mlp = nn.ModuleDict({"c_fc": Linear(c, 4 * c), "c_proj": Linear(4 * c, c)})

    def qkv(self, x: Tensor) -> Tensor:
        """(B, T, C) -> q, k, v as one (3, B, H, T, D)."""
        batch, length, _ = x.shape
        return self.attn["c_attn"](self.ln_1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)

    def rest(self, x: Tensor, attended: Tensor) -> Tensor:
        """The rest of a layer after attention (B, H, T, D): the projection, and the MLP."""
        x = x + self.attn["c_proj"](attended.transpose(1, 2).reshape(x.shape))
        hidden = self.mlp["c_fc"].gelu(self.ln_2(x), fused=self.fused_gelu)
        return x + self.mlp["c_proj"](hidden)


class TorchGPT(nn.Module):
    def __init__(self, config: GPTConfig, *, fused_gelu: bool = False) -> None:
        super().__init__()
        self.wte = nn.Embedding(padded(config.vocab_size), config.n_embd)
        self.wpe = nn.Embedding(config.n_ctx, config.n_embd)
        self.h = nn.ModuleList(Block(config, fused_gelu=fused_gelu) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, config.eps)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, Vp) of tokens (B, T)."""
        x = self.embed(tokens, torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            q, k, v = block.qkv(x).unbind(0)
            x = block.rest(x, functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        return self.logits(x)

    def fill(self, tokens: Tensor, cache: Cache) -> None:
        """Write keys and values of tokens (B, T) to the first T positions of a cache."""
        x, length = self.embed(tokens, torch.arange(tokens.shape[1], device=tokens.device)), tokens.shape[1]
        for layer, block in enumerate(self.h):
            q, k, v = block.qkv(x).unbind(0)
            cache.k[layer][:, :, :length], cache.v[layer][:, :, :length] = k, v
            x = block.rest(x, functional.scaled_dot_product_attention(q, k, v, is_causal=True))

    def hold(self, cache: Cache) -> Cache:
        """What `step` takes: the cache itself."""
        return cache

    def rewind(self, held: Cache, length: int) -> None:
        """The next step's position is `length`: each step is told."""

    def step(self, tokens: Tensor, position: Tensor, cache: Cache, *, masked: bool = False) -> Tensor:
        """Logits (B, Vp) after one more token (B,) of each sequence at one position (1,), which is written to the
        cache.

        If `masked`, the token attends to positions up to `position`; otherwise to all, for a cache that it fills.
        """
        x = self.embed(tokens[:, None], position)
        mask = (torch.arange(cache.k[0].shape[2], device=x.device) <= position)[None] if masked else None  # (1, P)
        for layer, block in enumerate(self.h):
            q, k, v = block.qkv(x).unbind(0)  # (B, H, 1, D) each
            keys, values = cache.k[layer], cache.v[layer]
            keys.index_copy_(2, position, k)
            values.index_copy_(2, position, v)
            x = block.rest(x, functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask))
        return self.logits(x[:, 0])

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        return self.wte(tokens) + self.wpe(positions)

    def logits(self, x: Tensor) -> Tensor:
        return functional.linear(self.ln_f(x), self.wte.weight)


def tensor(array: np.ndarray[Any, Any]) -> Tensor:
    """A host array as a tensor. PyTorch does not know numpy's bfloat16 type, so the bits are reinterpreted."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def as_tensors(weights: Mapping[str, np.ndarray[Any, Any]], device: Any) -> Iterator[tuple[str, Tensor]]:
    """Host arrays as tensors on `device`, with their names."""
    for name, array in weights.items():
        yield name, tensor(np.ascontiguousarray(array)).to(device)


def state(config: GPTConfig, weights: Mapping[str, Any], device: Any) -> dict[str, Tensor]:
    """Our weights under the module's names, on `device`: linear weights (out, in), the vocabulary padded with zeros."""
    found: dict[str, Tensor] = {}
    for name, value in as_tensors(weights, device):
        if name == "wte.weight":
            value = functional.pad(value, (0, 0, 0, padded(config.vocab_size) - config.vocab_size))
        elif name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            value = value.t().contiguous()
        found[name] = value
    return found


def build(config: GPTConfig, tensors: Mapping[str, Tensor], dtype: Any, *, fused_gelu: bool = False) -> TorchGPT:
    """A model with these tensors in `dtype`. Tensors that already have this dtype are shared, not copied."""
    with torch.device("meta"):
        model = TorchGPT(config, fused_gelu=fused_gelu)
    model.load_state_dict({name: value.to(dtype) for name, value in tensors.items()}, assign=True)
    return model.requires_grad_(False).eval()
