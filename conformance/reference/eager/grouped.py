"""Attention with rotated positions and several heads of queries for each of keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import float64
from .causal_attention import attention, scores_of_heads
from .decode import kv_append
from .rounding import F32, STORAGE, Array, f32, rounded
from .rows import rmsnorm


def turn(x: Array, cos: Array, sin: Array) -> F32:
    first, second = np.split(f32(x), 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def rope_append(
    q: Array,
    k: Array,
    v: Array,
    positions: Array,
    cos: Array,
    sin: Array,
    k_cache: Array,
    v_cache: Array,
    *,
    dtype: str,
) -> tuple[Array, Array, Array]:
    at = float64.places(positions, q.shape[1])
    c, s = f32(cos[at][:, :, None]), f32(sin[at][:, :, None])  # (B, T, 1, D / 2)
    keys, values = kv_append(rounded(turn(k, c, s), dtype), v, positions, k_cache, v_cache, dtype=dtype)
    return rounded(turn(q, c[:, :, None], s[:, :, None]), dtype), keys, values


def norm_rope_append(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, q_weight: Array, k_weight: Array,
    k_cache: Array, v_cache: Array, eps: float, *, dtype: str,
) -> tuple[Array, Array, Array]:  # fmt: skip
    heads = rmsnorm(q, q_weight, eps, dtype=dtype), rmsnorm(k, k_weight, eps, dtype=dtype)
    return rope_append(*heads, v, positions, cos, sin, k_cache, v_cache, dtype=dtype)


def grouped_attention(q: Array, k: Array, v: Array, scale: float, *, dtype: str) -> Array:
    heads = [attention(q[:, :, :, i], k, v, scale, dtype=dtype) for i in range(q.shape[3])]
    return np.stack(heads, axis=3)  # (B, T, G, Q, D)


def grouped_decode_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, partial: Array, scale: float, *, dtype: str
) -> tuple[F32, F32]:
    """As `attention`: scores in f32, probabilities rounded to the dtype before the second product."""

    def part(b: int, seen: slice) -> tuple[Array, Array]:
        return k_cache[b, seen], v_cache[b, seen]

    return over_spans(q, k_cache.shape[1], part, positions, partial, scale, dtype)


def over_spans(
    q: Array, length: int, part: Callable[[int, slice], tuple[Array, Array]], positions: Array, partial: Array,
    scale: float, dtype: str,
) -> tuple[F32, F32]:  # fmt: skip
    """`grouped_decode_attention` of caches of that length. `part`: keys and values (S, G, D) of a sequence's span."""
    sums, stats = np.zeros(partial.shape, np.float32), np.zeros((*partial.shape[:4], 2), np.float32)
    stats[..., 0] = np.float32(float64.LEAST)
    for b, last in enumerate(positions):
        for z, (start, stop) in enumerate(float64.spans(length, partial.shape[3], int(last))):
            stats[b, :, :, z], sums[b, :, :, z] = _span(q[b], *part(b, slice(start, stop)), scale, dtype)
    return sums, stats


def rope_decode_attention(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, k_cache: Array, v_cache: Array,
    partial: Array, scale: float, *, dtype: str,
) -> tuple[Array, Array, F32, F32]:  # fmt: skip
    token = q[:, None], k[:, None], v[:, None]  # T = 1
    turned, keys, values = rope_append(*token, positions, cos, sin, k_cache, v_cache, dtype=dtype)
    sums, stats = grouped_decode_attention(turned[:, 0], keys, values, positions, partial, scale, dtype=dtype)
    return keys, values, sums, stats


def _span(q: Array, keys: Array, values: Array, scale: float, dtype: str) -> tuple[F32, F32]:
    """Maximum and sum of the weights (G, Q, 2), and the weighted sum of the values (G, Q, D)."""
    factor = np.float32(scale) * np.float32(np.log2(np.e))
    scores = factor * scores_of_heads(q, keys, dtype)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp2(scores - top)
    sums = np.einsum("gqp,pgd->gqd", f32(rounded(weights, dtype)), f32(values))
    return np.concatenate([top, weights.sum(axis=-1, keepdims=True)], axis=-1), sums


def grouped_decode_attention_unsplit(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, scale: float, *, dtype: str
) -> Array:
    """As `grouped_decode_attention` with one span, then divided by the sum of the weights in f32."""
    out = np.zeros(q.shape, STORAGE[dtype])
    for b, last in enumerate(positions):
        seen = slice(0, int(last) + 1)
        stats, sums = _span(q[b], k_cache[b, seen], v_cache[b, seen], scale, dtype)
        out[b] = rounded(sums / stats[..., 1:], dtype)
    return out
