"""The forward pass of the family `llama` in numpy float64: what its logits and caches are compared with.

B sequences of T tokens, C = n_embd, H heads of D in groups that share G heads of keys, F = ffn, S positions so far.
Touvron et al., LLaMA, arXiv:2302.13971, section 2.2; grouped queries: Ainslie et al., arXiv:2305.13245; norms of
queries and keys: Qwen3, arXiv:2505.09388, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .config import GPTConfig
from .rope import table, turned

Array = NDArray[Any]
F64 = NDArray[np.float64]


class Cache:
    """Keys, already turned, and values of the positions so far: each (B, S, G, D) for each layer."""

    def __init__(self, config: GPTConfig, batch: int) -> None:
        empty = np.zeros((batch, 0, config.kv_heads, config.head_size))
        self.layers: list[tuple[F64, F64]] = [(empty, empty)] * config.n_layer

    @property
    def length(self) -> int:
        """How many positions there are."""
        return self.layers[0][0].shape[1]


def float64(
    config: GPTConfig, weights: Mapping[str, Array], tokens: Array, cache: Cache | None = None
) -> F64:  # fmt: skip
    """Logits (B, T, V) at every position of tokens (B, T), which come after those of the cache and are appended to it.
    Without one they are the first."""
    batch, length = tokens.shape
    cache = Cache(config, batch) if cache is None else cache
    heads, size = config.n_head, config.head_size
    cos, sin = table(config, cache.length + np.arange(length))

    def w(name: str) -> F64:
        return np.asarray(weights[name], np.float64)

    def linear(x: F64, name: str) -> F64:
        return x @ w(f"{name}.weight").T  # stored (out, in)

    def norm(x: F64, name: str) -> F64:
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + config.eps) * w(f"{name}.weight")

    x = np.asarray(weights["embed_tokens.weight"][tokens], np.float64)  # (B, T, C)
    for index in range(config.n_layer):
        at, mlp = f"layers.{index}.self_attn", f"layers.{index}.mlp"
        normed = norm(x, f"layers.{index}.input_layernorm")
        q, k, v = (linear(normed, f"{at}.{part}_proj").reshape(batch, length, -1, size) for part in "qkv")
        if config.qk_norm:
            q, k = norm(q, f"{at}.q_norm"), norm(k, f"{at}.k_norm")
        before = cache.layers[index]
        keys = np.concatenate([before[0], turned(k, cos, sin)], axis=1)  # (B, S, G, D)
        values = np.concatenate([before[1], v], axis=1)
        y = attention(turned(q, cos, sin), keys, values)  # (B, T, H, D)
        x = x + linear(y.reshape(batch, length, heads * size), f"{at}.o_proj")
        normed = norm(x, f"layers.{index}.post_attention_layernorm")
        x = x + linear(silu(linear(normed, f"{mlp}.gate_proj")) * linear(normed, f"{mlp}.up_proj"), f"{mlp}.down_proj")
        cache.layers[index] = (keys, values)
    return norm(x, "norm") @ w("embed_tokens.weight" if config.tied else "lm_head.weight").T


def attention(q: F64, k: F64, v: F64) -> F64:
    """Causal attention of the last T of S positions: q (B, T, H, D), k and v (B, S, G, D), result (B, T, H, D)."""
    (batch, length, heads, size), (_, total, groups, _) = q.shape, k.shape
    grouped = q.reshape(batch, length, groups, heads // groups, size)
    scores = np.einsum("btgrd,bsgd->bgrts", grouped, k) * size**-0.5
    later = np.arange(total) > np.arange(total - length, total)[:, None]  # (T, S)
    scores[..., later] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bgrts,bsgd->btgrd", weights, v).reshape(q.shape)


def silu(x: F64) -> F64:
    """x / (1 + exp(-x)), as Hendrycks and Gimpel, arXiv:1606.08415, write it."""
    return x * np.where(x >= 0, 1, np.exp(np.minimum(x, 0))) / (1 + np.exp(-np.abs(x)))
