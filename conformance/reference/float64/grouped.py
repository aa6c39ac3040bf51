"""Attention with rotated positions and several heads of queries for each of keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .arrays import F64, Array, f64
from .causal_attention import attention
from .decode import LEAST, kv_append, spans
from .rows import rmsnorm, softmax


def turn(x: Array, cos: Array, sin: Array) -> F64:
    """Heads (..., D), turned by the angles of their position: two halves of D / 2 elements (..., D / 2)."""
    first, second = np.split(f64(x), 2, axis=-1)
    c, s = f64(cos), f64(sin)
    return np.concatenate([first * c - second * s, second * c + first * s], axis=-1)


def places(positions: Array, length: int) -> NDArray[np.int64]:
    """The positions (B, T) of the new tokens."""
    return positions[:, None].astype(np.int64) + np.arange(length)


def rope_append(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, k_cache: Array, v_cache: Array
) -> tuple[F64, F64, F64]:
    """The turned queries, and the caches after the append; the arguments stay as they are."""
    at = places(positions, q.shape[1])
    c, s = cos[at][:, :, None], sin[at][:, :, None]  # (B, T, 1, D / 2)
    keys, values = kv_append(turn(k, c, s), v, positions, k_cache, v_cache)
    return turn(q, c[:, :, None], s[:, :, None]), keys, values


def norm_rope_append(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, q_weight: Array, k_weight: Array,
    k_cache: Array, v_cache: Array, eps: float,
) -> tuple[F64, F64, F64]:  # fmt: skip
    """`rope_append` of heads that are normed first."""
    heads = rmsnorm(q, q_weight, eps), rmsnorm(k, k_weight, eps)
    return rope_append(*heads, v, positions, cos, sin, k_cache, v_cache)


def grouped_attention(q: Array, k: Array, v: Array, scale: float) -> F64:
    """Causal attention. The T queries are the last T of the S positions."""
    heads = [attention(q[:, :, :, i], k, v, scale) for i in range(q.shape[3])]
    return np.stack(heads, axis=3)  # (B, T, G, Q, D)


def grouped_decode_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, partial: Array, scale: float
) -> tuple[F64, F64]:
    """`partial` and `stats` for as many spans as `partial` has: see ops.toml."""

    def part(b: int, seen: slice) -> tuple[F64, F64]:
        return f64(k_cache[b, seen]), f64(v_cache[b, seen])

    return over_spans(q, k_cache.shape[1], part, positions, partial, scale)


def over_spans(
    q: Array, length: int, part: Callable[[int, slice], tuple[F64, F64]], positions: Array, partial: Array, scale: float
) -> tuple[F64, F64]:
    """`grouped_decode_attention` of caches of that length. `part`: keys and values (S, G, D) of a sequence's span."""
    sums, stats = np.zeros(partial.shape), np.zeros((*partial.shape[:4], 2))  # (B, G, Q, Z, D), (B, G, Q, Z, 2)
    stats[..., 0] = LEAST
    for b, last in enumerate(positions):
        for z, (start, stop) in enumerate(spans(length, partial.shape[3], int(last))):
            keys, values = part(b, slice(start, stop))
            scores = scale * np.log2(np.e) * np.einsum("gqd,pgd->gqp", f64(q[b]), keys)  # (G, Q, S)
            top = scores.max(axis=-1, keepdims=True)
            weights = 2.0 ** (scores - top)
            stats[b, :, :, z, 0], stats[b, :, :, z, 1] = top[..., 0], weights.sum(axis=-1)
            sums[b, :, :, z] = np.einsum("gqp,pgd->gqd", weights, values)
    return sums, stats


def rope_decode_attention(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, k_cache: Array, v_cache: Array,
    partial: Array, scale: float,
) -> tuple[F64, F64, F64, F64]:  # fmt: skip
    """The caches after the append, and `partial` and `stats` of the turned queries."""
    token = q[:, None], k[:, None], v[:, None]  # T = 1
    turned, keys, values = rope_append(*token, positions, cos, sin, k_cache, v_cache)
    sums, stats = grouped_decode_attention(turned[:, 0], keys, values, positions, partial, scale)
    return keys, values, sums, stats


def grouped_decode_attention_unsplit(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, scale: float
) -> F64:  # (B, G, Q, D)
    out = np.zeros(q.shape)
    for b, last in enumerate(positions):
        keys, values = f64(k_cache[b, : int(last) + 1]), f64(v_cache[b, : int(last) + 1])
        weights = softmax(scale * np.einsum("gqd,pgd->gqp", f64(q[b]), keys))  # (G, Q, S)
        out[b] = np.einsum("gqp,pgd->gqd", weights, values)
    return out
