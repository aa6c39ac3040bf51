"""GPT-2's decoding: its cache, attention to it, and a whole step."""

from __future__ import annotations

import numpy as np

from .. import decode_step as whole
from .. import float64
from .causal_attention import scores_of_heads
from .rms_products import linear_residual_squares
from .rounding import F32, STORAGE, Array, f32, rounded


def kv_append(
    k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, *, dtype: str
) -> tuple[Array, Array]:
    """The caches after the append; the arguments stay as they are."""
    k_out, v_out = (np.array(cache, STORAGE[dtype]) for cache in (k_cache, v_cache))
    for batch, start in enumerate(positions):
        k_out[batch, start : start + k.shape[1]] = k[batch]
        v_out[batch, start : start + v.shape[1]] = v[batch]
    return k_out, v_out


def decode_attention(
    q: Array,
    k: Array,
    v: Array,
    positions: Array,
    k_cache: Array,
    v_cache: Array,
    partial: Array,
    scale: float,
    *,
    dtype: str,
) -> tuple[Array, Array, F32, F32]:
    """As `attention`: scores in f32, probabilities rounded to the dtype before the second product."""
    keys, values = kv_append(k[:, None], v[:, None], positions, k_cache, v_cache, dtype=dtype)
    sums, stats = np.zeros(partial.shape, np.float32), np.zeros((*partial.shape[:3], 2), np.float32)
    stats[..., 0] = np.float32(float64.LEAST)
    factor = np.float32(scale) * np.float32(np.log2(np.e))
    for b, last in enumerate(positions):
        for z, (start, stop) in enumerate(float64.spans(keys.shape[1], partial.shape[2], int(last))):
            scores = factor * scores_of_heads(q[b][:, None], keys[b, start:stop], dtype)[:, 0]  # (H, S)
            top = scores.max(axis=-1, keepdims=True)
            weights = np.exp2(scores - top)
            stats[b, :, z, 0], stats[b, :, z, 1] = top[:, 0], weights.sum(axis=-1)
            sums[b, :, z] = np.einsum("hp,phd->hd", f32(rounded(weights, dtype)), f32(values[b, start:stop]))
    return keys, values, sums, stats


def merge_attention(partial: Array, stats: Array, *, dtype: str) -> Array:
    tops = f32(stats[..., 0])  # (B, H, Z)
    weights = np.exp2(tops - tops.max(axis=-1, keepdims=True))
    total = (f32(stats[..., 1]) * weights).sum(axis=-1)
    return rounded((f32(partial) * weights[..., None]).sum(axis=2) / total[..., None], dtype)  # (B, H, D)


def merge_linear_residual_squares(
    partial: Array, stats: Array, weight: Array, bias: Array, residual: Array, squares: Array, *, dtype: str
) -> tuple[Array, F32]:
    rows = merge_attention(partial, stats, dtype=dtype).reshape(len(partial), -1)  # (B, H D)
    return linear_residual_squares(rows, weight, bias, residual, squares, dtype=dtype)


def decode_attention_unsplit(
    q: Array, k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, scale: float, *, dtype: str
) -> tuple[Array, Array, Array]:
    """As `decode_attention` with one span, then divided by the sum of the weights in f32."""
    keys, values = kv_append(k[:, None], v[:, None], positions, k_cache, v_cache, dtype=dtype)
    out = np.zeros(q.shape, STORAGE[dtype])
    factor = np.float32(scale) * np.float32(np.log2(np.e))
    for b, last in enumerate(positions):
        seen = slice(0, int(last) + 1)
        scores = factor * scores_of_heads(q[b][:, None], keys[b, seen], dtype)[:, 0]  # (H, S)
        weights = np.exp2(scores - scores.max(axis=-1, keepdims=True))
        sums = np.einsum("hp,phd->hd", f32(rounded(weights, dtype)), f32(values[b, seen]))
        out[b] = rounded(sums / weights.sum(axis=-1, keepdims=True), dtype)
    return keys, values, out


def decode_step(cache: Array, eps: float, visible: int, *, dtype: str, **arrays: Array) -> tuple[Array, ...]:
    del visible  # says which tokens may be chosen
    given = {**arrays, "cache": cache}
    made = whole.decode_step(given, eps, wide=np.float32, keep=lambda x: f32(rounded(x, dtype)))
    return tuple(rounded(one, dtype) for one in made)


def decode_step_of_ranks(
    cache: Array, eps: float, visible: int, rank: int, *, dtype: str, **arrays: Array
) -> tuple[Array, ...]:  # fmt: skip
    del visible
    given = {**arrays, "cache": cache}
    made = whole.decode_step_of_ranks(given, rank, eps, wide=np.float32, keep=lambda x: f32(rounded(x, dtype)))
    return tuple(rounded(one, dtype) for one in made)


def decode_step_texts(cache: Array, eps: float, visible: int, *, dtype: str, **arrays: Array) -> tuple[Array, ...]:
    del visible
    given = {**arrays, "cache": cache}
    made = whole.decode_step_texts(given, eps, wide=np.float32, keep=lambda x: f32(rounded(x, dtype)))
    return tuple(rounded(one, dtype) for one in made)


decode_step_weight_f8 = decode_step_weight_f8_logits = decode_step
decode_step_texts_weight_f8 = decode_step_texts_weight_f8_logits = decode_step_texts


def decode_step_cache_f8(
    cache: Array, cache_scales: Array, eps: float, visible: int, *, dtype: str, **arrays: Array
) -> tuple[Array, Array, Array]:  # fmt: skip
    del visible
    given = {**arrays, "cache": cache, "cache_scales": cache_scales}
    logits, kept, scales = whole.decode_step(given, eps, wide=np.float32, keep=lambda x: f32(rounded(x, dtype)))
    return rounded(logits, dtype), kept.astype(cache.dtype), scales


decode_step_weight_f8_cache_f8 = decode_step_weight_f8_logits_cache_f8 = decode_step_cache_f8
