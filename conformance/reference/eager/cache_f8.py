"""A cache in 8-bit floats."""

from __future__ import annotations

import numpy as np

from .. import float64
from .grouped import over_spans, rope_append
from .rounding import F32, Array, f32, rounded
from .rows import rmsnorm


def kv_append_f8(
    k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, *,
    dtype: str,
) -> tuple[Array, Array, F32, F32]:  # fmt: skip
    del dtype
    keys, values, *scales = float64.kv_append_f8(k, v, positions, k_cache, v_cache, k_scales, v_scales)
    return keys, values, f32(scales[0]), f32(scales[1])


def rope_append_f8(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, k_cache: Array, v_cache: Array,
    k_scales: Array, v_scales: Array, *, dtype: str,
) -> tuple[Array, Array, Array, F32, F32]:  # fmt: skip
    empty = np.zeros(k_cache.shape, np.float32)
    turned, whole, _ = rope_append(q, k, v, positions, cos, sin, empty, empty, dtype=dtype)
    at = positions[:, None] + np.arange(k.shape[1])
    turned_k = whole[np.arange(len(k))[:, None], at]
    return turned, *kv_append_f8(turned_k, v, positions, k_cache, v_cache, k_scales, v_scales, dtype=dtype)


def norm_rope_append_f8(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, q_weight: Array, k_weight: Array,
    k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, eps: float, *, dtype: str,
) -> tuple[Array, Array, Array, F32, F32]:  # fmt: skip
    heads = rmsnorm(q, q_weight, eps, dtype=dtype), rmsnorm(k, k_weight, eps, dtype=dtype)
    return rope_append_f8(*heads, v, positions, cos, sin, k_cache, v_cache, k_scales, v_scales, dtype=dtype)


def kv_from_f8(
    k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, *, dtype: str
) -> tuple[Array, Array]:  # fmt: skip
    keys, values = float64.kv_from_f8(k_cache, v_cache, k_scales, v_scales)
    return rounded(f32(keys), dtype), rounded(f32(values), dtype)


def decode_attention_unsplit_f8(
    q: Array, k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array,
    scale: float, *, dtype: str,
) -> tuple[Array, Array, F32, F32, Array]:  # fmt: skip
    kept = kv_append_f8(k[:, None], v[:, None], positions, k_cache, v_cache, k_scales, v_scales, dtype=dtype)
    one_span = np.zeros((*q.shape[:2], 1, 1, q.shape[2]))  # (B, G, Q, Z, D)
    partial, stats = grouped_decode_attention_f8(q[:, :, None], *kept, positions, one_span, scale, dtype=dtype)
    return *kept, rounded(partial[:, :, 0, 0] / stats[:, :, 0, 0, 1:], dtype)


def grouped_decode_attention_f8(
    q: Array, k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, positions: Array, partial: Array,
    scale: float, *, dtype: str,
) -> tuple[F32, F32]:  # fmt: skip
    exact = float64.parts_of(k_cache, v_cache, k_scales, v_scales)

    def part(b: int, seen: slice) -> tuple[Array, Array]:
        keys, values = exact(b, seen)
        return rounded(f32(keys), dtype), rounded(f32(values), dtype)

    return over_spans(q, k_cache.shape[1], part, positions, partial, scale, dtype)
