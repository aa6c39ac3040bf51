"""GPT-2's decoding: its cache, attention to it, and a whole step."""

from __future__ import annotations

import numpy as np

from .. import decode_step as whole
from .arrays import F64, Array, f64
from .rms_products import linear_residual_squares
from .rows import softmax


def kv_append(k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array) -> tuple[Array, Array]:
    """The caches after the append, in the dtype of what is appended; the arguments stay as they are."""
    k_out, v_out = np.array(k_cache, k.dtype), np.array(v_cache, v.dtype)
    for batch, start in enumerate(positions):
        k_out[batch, start : start + k.shape[1]] = k[batch]
        v_out[batch, start : start + v.shape[1]] = v[batch]
    return k_out, v_out


def decode_attention(
    q: Array, k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, partial: Array, scale: float
) -> tuple[Array, Array, F64, F64]:
    """The caches after the append, then `partial` and `stats` for as many spans as `partial` has: see ops.toml."""
    keys, values = kv_append(k[:, None], v[:, None], positions, k_cache, v_cache)  # (B, P, H, D)
    sums, stats = np.zeros(partial.shape), np.zeros((*partial.shape[:3], 2))  # (B, H, Z, D), (B, H, Z, 2)
    stats[..., 0] = LEAST
    for b, last in enumerate(positions):
        for z, (start, stop) in enumerate(spans(keys.shape[1], partial.shape[2], int(last))):
            scores = scale * np.log2(np.e) * np.einsum("hd,phd->hp", f64(q[b]), f64(keys[b, start:stop]))  # (H, S)
            top = scores.max(axis=-1, keepdims=True)
            weights = 2.0 ** (scores - top)
            stats[b, :, z, 0], stats[b, :, z, 1] = top[:, 0], weights.sum(axis=-1)
            sums[b, :, z] = np.einsum("hp,phd->hd", weights, f64(values[b, start:stop]))
    return keys, values, sums, stats


LEAST = -1e30  # stands for the largest score of a span without positions


def spans(positions: int, count: int, last: int) -> list[tuple[int, int]]:
    """Start and stop of the non-empty spans of a cache that is filled up to position `last`. The length of a span is
    the smallest power of two, at least SPAN_MIN, with which `count` spans cover all `positions`."""
    size = SPAN_MIN
    while -(-positions // size) > count:
        size *= 2
    return [(start, min(start + size, last + 1)) for start in range(0, last + 1, size)]


SPAN_MIN = 128


def merge_attention(partial: Array, stats: Array) -> F64:
    tops = f64(stats[..., 0])  # (B, H, Z)
    weights = 2.0 ** (tops - tops.max(axis=-1, keepdims=True))
    total = (f64(stats[..., 1]) * weights).sum(axis=-1)
    return (f64(partial) * weights[..., None]).sum(axis=2) / total[..., None]  # (B, H, D)


def merge_linear_residual_squares(
    partial: Array, stats: Array, weight: Array, bias: Array, residual: Array, squares: Array
) -> tuple[F64, F64]:
    rows = merge_attention(partial, stats).reshape(len(partial), -1)  # (B, H D)
    return linear_residual_squares(rows, weight, bias, residual, squares)


def decode_attention_unsplit(
    q: Array, k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, scale: float
) -> tuple[Array, Array, F64]:
    """The caches after the append, and the result (B, H, D)."""
    keys, values = kv_append(k[:, None], v[:, None], positions, k_cache, v_cache)  # (B, P, H, D)
    out = np.zeros(q.shape)
    for b, last in enumerate(positions):
        seen = slice(0, int(last) + 1)
        weights = softmax(scale * np.einsum("hd,phd->hp", f64(q[b]), f64(keys[b, seen])))  # (H, S)
        out[b] = np.einsum("hp,phd->hd", weights, f64(values[b, seen]))
    return keys, values, out


def decode_step(cache: Array, eps: float, visible: int, **arrays: Array) -> tuple[F64, ...]:
    """Logits and the cache."""
    del visible  # says which tokens may be chosen
    return whole.decode_step({**arrays, "cache": cache}, eps, wide=np.float64, keep=lambda x: x)


def decode_step_of_ranks(cache: Array, eps: float, visible: int, rank: int, **arrays: Array) -> tuple[F64, ...]:
    """A rank's logits and its cache."""
    del visible
    return whole.decode_step_of_ranks({**arrays, "cache": cache}, rank, eps, wide=np.float64, keep=lambda x: x)


def decode_step_texts(cache: Array, eps: float, visible: int, **arrays: Array) -> tuple[F64, F64]:
    """Logits and the caches."""
    del visible
    return whole.decode_step_texts({**arrays, "cache": cache}, eps, wide=np.float64, keep=lambda x: x)


decode_step_weight_f8 = decode_step_weight_f8_logits = decode_step
decode_step_texts_weight_f8 = decode_step_texts_weight_f8_logits = decode_step_texts


def decode_step_cache_f8(
    cache: Array, cache_scales: Array, eps: float, visible: int, **arrays: Array
) -> tuple[F64, F64, F64]:  # fmt: skip
    """Logits, the cache without the rounding of its last step, so that a number on the other side of a tie is no error,
    and its scales."""
    logits, *cached = decode_step(cache, eps, visible, **arrays, cache_scales=cache_scales)
    return logits, cached[0], cached[1]


decode_step_weight_f8_cache_f8 = decode_step_weight_f8_logits_cache_f8 = decode_step_cache_f8
