"""A cache in 8-bit floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .arrays import F64, Array, f64
from .grouped import over_spans, rope_append
from .rows import rmsnorm
from .scaled import LARGEST, quantize_rows


def kv_append_f8(
    k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array
) -> tuple[Array, Array, F64, F64]:
    """Caches and scales after the append: the very numbers, as of `quantize_rows`."""
    keys, k_out = _append_rounded(k, positions, k_cache, k_scales, quantize_rows)
    values, v_out = _append_rounded(v, positions, v_cache, v_scales, quantize_rows)
    return keys, values, k_out, v_out


def _append_rounded(
    heads: Array, positions: Array, cache: Array, scales: Array, round_rows: Callable[[Array], tuple[F64, F64]]
) -> tuple[Array, F64]:
    """A cache (B, P, G, D) and its scales (B, G, P) after heads (B, T, G, D) were rounded and appended. Where these are
    the very numbers, the cache stays in 8 bits."""
    kept, of = cache.copy() if round_rows is quantize_rows else f64(cache), np.array(scales, np.float64)
    for batch, start in enumerate(positions):
        stop = start + heads.shape[1]
        rows, found = round_rows(heads[batch].reshape(-1, heads.shape[3]))
        kept[batch, start:stop] = rows.reshape(heads.shape[1:])
        of[batch, :, start:stop] = found.reshape(heads.shape[1:3]).T
    return kept, of


def rope_append_f8(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, k_cache: Array, v_cache: Array,
    k_scales: Array, v_scales: Array,
) -> tuple[F64, Array, Array, F64, F64]:  # fmt: skip
    """Keys without the rounding of their last step, so that one on the other side of a tie is no error."""
    turned, whole, _ = rope_append(q, k, v, positions, cos, sin, np.zeros(k_cache.shape), np.zeros(v_cache.shape))
    at = positions[:, None] + np.arange(k.shape[1])
    keys, k_out = _append_rounded(whole[np.arange(len(k))[:, None], at], positions, k_cache, k_scales, _unrounded)
    values, v_out = _append_rounded(v, positions, v_cache, v_scales, quantize_rows)
    return turned, keys, values, k_out, v_out


def _unrounded(rows: Array) -> tuple[F64, F64]:
    scales = np.maximum(np.abs(f64(rows)).max(axis=-1) / LARGEST, np.finfo(np.float32).smallest_normal)
    return f64(rows) / scales[:, None], scales


def norm_rope_append_f8(
    q: Array, k: Array, v: Array, positions: Array, cos: Array, sin: Array, q_weight: Array, k_weight: Array,
    k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, eps: float,
) -> tuple[F64, Array, Array, F64, F64]:  # fmt: skip
    heads = rmsnorm(q, q_weight, eps), rmsnorm(k, k_weight, eps)
    return rope_append_f8(*heads, v, positions, cos, sin, k_cache, v_cache, k_scales, v_scales)


def decode_attention_unsplit_f8(
    q: Array, k: Array, v: Array, positions: Array, k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array,
    scale: float,
) -> tuple[Array, Array, F64, F64, F64]:  # fmt: skip
    """The caches and scales after the append, and the result (B, H, D)."""
    kept = kv_append_f8(k[:, None], v[:, None], positions, k_cache, v_cache, k_scales, v_scales)
    one_span = np.zeros((*q.shape[:2], 1, 1, q.shape[2]))  # (B, G, Q, Z, D)
    partial, stats = grouped_decode_attention_f8(q[:, :, None], *kept, positions, one_span, scale)
    return *kept, partial[:, :, 0, 0] / stats[:, :, 0, 0, 1:]


def kv_from_f8(k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array) -> tuple[F64, F64]:
    keys, values = (
        f64(cache) * np.moveaxis(f64(scales), 1, 2)[..., None]
        for cache, scales in ((k_cache, k_scales), (v_cache, v_scales))
    )
    return keys, values


def grouped_decode_attention_f8(
    q: Array, k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array, positions: Array, partial: Array,
    scale: float,
) -> tuple[F64, F64]:  # fmt: skip
    part = parts_of(k_cache, v_cache, k_scales, v_scales)
    return over_spans(q, k_cache.shape[1], part, positions, partial, scale)


def parts_of(
    k_cache: Array, v_cache: Array, k_scales: Array, v_scales: Array
) -> Callable[[int, slice], tuple[F64, F64]]:
    """What gives the keys and values (S, G, D) of a sequence's span."""

    def part(b: int, seen: slice) -> tuple[F64, F64]:
        caches, scales = (k_cache[b, seen], v_cache[b, seen]), (k_scales[b, :, seen], v_scales[b, :, seen])
        keys, values = kv_from_f8(*(cache[None] for cache in caches), *(scale[None] for scale in scales))
        return keys[0], values[0]

    return part
