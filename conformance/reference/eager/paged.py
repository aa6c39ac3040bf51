"""A cache in pages."""

from __future__ import annotations

import numpy as np

from .. import float64
from .decode import kv_append
from .grouped import grouped_attention, grouped_decode_attention, turn
from .rounding import F32, STORAGE, Array, f32, rounded
from .rows import rmsnorm


def paged_append(
    k: Array, v: Array, positions: Array, tables: Array, k_cache: Array, v_cache: Array, *, dtype: str
) -> tuple[Array, Array]:
    """The pages after the append; the arguments stay as they are."""
    caches = float64.rows_of(k_cache, tables), float64.rows_of(v_cache, tables)
    rows = kv_append(k, v, positions, *caches, dtype=dtype)
    keys, values = (
        float64.into_pages(pages, tables, made, positions, k.shape[1])
        for pages, made in zip((k_cache, v_cache), rows, strict=True)
    )
    return keys, values


def paged_rope_append(
    q: Array, k: Array, v: Array, positions: Array, tables: Array, cos: Array, sin: Array, k_cache: Array,
    v_cache: Array, *, dtype: str,
) -> tuple[Array, Array, Array]:  # fmt: skip
    at = float64.places(positions, q.shape[1])
    c, s = f32(cos[at][:, :, None]), f32(sin[at][:, :, None])  # (B, T, 1, D / 2)
    keys, values = paged_append(rounded(turn(k, c, s), dtype), v, positions, tables, k_cache, v_cache, dtype=dtype)
    return rounded(turn(q, c[:, :, None], s[:, :, None]), dtype), keys, values


def paged_norm_rope_append(
    q: Array, k: Array, v: Array, positions: Array, tables: Array, cos: Array, sin: Array, q_weight: Array,
    k_weight: Array, k_cache: Array, v_cache: Array, eps: float, *, dtype: str,
) -> tuple[Array, Array, Array]:  # fmt: skip
    heads = rmsnorm(q, q_weight, eps, dtype=dtype), rmsnorm(k, k_weight, eps, dtype=dtype)
    return paged_rope_append(*heads, v, positions, tables, cos, sin, k_cache, v_cache, dtype=dtype)


def paged_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, tables: Array, scale: float, *, dtype: str
) -> Array:
    keys, values = float64.rows_of(k_cache, tables), float64.rows_of(v_cache, tables)
    out = np.zeros(q.shape, STORAGE[dtype])
    for b, start in enumerate(positions):
        seen = slice(0, int(start) + q.shape[1])
        heads = q[b : b + 1], keys[b : b + 1, seen], values[b : b + 1, seen]
        out[b] = grouped_attention(*heads, scale, dtype=dtype)[0]
    return out


def paged_decode_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, tables: Array, partial: Array, scale: float, *,
    dtype: str,
) -> tuple[F32, F32]:  # fmt: skip
    keys, values = float64.rows_of(k_cache, tables), float64.rows_of(v_cache, tables)
    return grouped_decode_attention(q[:, 0], keys, values, positions, partial, scale, dtype=dtype)
