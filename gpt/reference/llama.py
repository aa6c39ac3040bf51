"""The forward pass of the family `llama` in numpy: what its logits and caches are compared with.

B sequences of T tokens, C = n_embd, G heads of keys of D, each shared by Q heads of queries, S positions so far.
Touvron et al., LLaMA, arXiv:2302.13971, section 2.2; grouped queries: Ainslie et al., arXiv:2305.13245; norms of
queries and keys: Qwen3, arXiv:2505.09388, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import GPTConfig
from ..rope import table

Array = NDArray[Any]


class Cache:
    """Keys, already turned, and values of the positions so far: each (B, S, G, D) for each layer."""

    def __init__(self, config: GPTConfig, batch: int) -> None:
        empty = np.zeros((batch, 0, config.kv_heads, config.head_size), np.float32)
        self.layers: list[tuple[Array, Array]] = [(empty, empty)] * config.n_layer

    @property
    def length(self) -> int:
        """How many positions there are."""
        return self.layers[0][0].shape[1]


def forward(
    ops: ModuleType, config: GPTConfig, weights: Mapping[str, Array], tokens: Array, cache: Cache | None = None,
    **options: str,
) -> Array:  # fmt: skip
    """Logits (B, T, V) at every position of tokens (B, T), which come after those of the cache and are appended to it.
    Without one they are the first. `ops`: what computes each op, of conformance/reference; `options` of each."""

    def op(name: str) -> Any:
        return partial(getattr(ops, name), **options)

    def product(x: Array, name: str) -> Array:
        return op("matmul")(x, weights[f"{name}.weight"].T)  # stored (out, in)

    def norm(x: Array, name: str) -> Array:
        return op("rmsnorm")(x, weights[f"{name}.weight"], config.eps)

    batch, length = tokens.shape
    cache = Cache(config, batch) if cache is None else cache
    heads, shared, size = config.kv_heads, config.group, config.head_size
    start = cache.length
    room = np.zeros((batch, length, heads, size), np.float32)  # for the new positions of a cache
    cos, sin = table(config, np.arange(start + length))  # (S, D / 2)
    x = op("token_embedding")(tokens, weights["embed_tokens.weight"])  # (B, T, C)
    for index in range(config.n_layer):
        layer = f"layers.{index}"
        normed = norm(x, f"{layer}.input_layernorm")
        q = product(normed, f"{layer}.self_attn.q_proj").reshape(batch, length, heads, shared, size)
        k, v = (product(normed, f"{layer}.self_attn.{part}_proj").reshape(room.shape) for part in "kv")
        if config.qk_norm:
            q, k = norm(q, f"{layer}.self_attn.q_norm"), norm(k, f"{layer}.self_attn.k_norm")
        caches = (np.concatenate([before, room.astype(before.dtype)], axis=1) for before in cache.layers[index])
        q, keys, values = op("rope_append")(q, k, v, np.full(batch, start), cos, sin, *caches)  # caches (B, S, G, D)
        cache.layers[index] = (keys, values)
        y = op("grouped_attention")(q, keys, values, size**-0.5).reshape(batch, length, -1)  # (B, T, G * Q * D)
        x = op("matmul_residual")(y, weights[f"{layer}.self_attn.o_proj.weight"].T, x)
        normed = norm(x, f"{layer}.post_attention_layernorm")
        gate, up, down = (weights[f"{layer}.mlp.{part}_proj.weight"].T for part in ("gate", "up", "down"))
        x = op("matmul_residual")(op("swiglu")(normed, gate, up), down, x)
    return op("logits")(norm(x, "norm"), weights["embed_tokens.weight" if config.tied else "lm_head.weight"])
