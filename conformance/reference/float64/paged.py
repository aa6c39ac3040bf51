"""A cache in pages."""

from __future__ import annotations

import numpy as np

from .arrays import F64, Array, f64
from .decode import kv_append
from .grouped import grouped_attention, grouped_decode_attention, places, turn
from .rows import rmsnorm


def rows_of(pages: Array, tables: Array) -> Array:
    """The rows (B, L * PAGE, ...) that the pages (R, PAGE, ...) of each sequence are."""
    return pages[tables].reshape(tables.shape[0], -1, *pages.shape[2:])


def into_pages(pages: Array, tables: Array, rows: Array, positions: Array, length: int) -> Array:
    """A copy of the pages with `length` positions of each sequence, from its own on, taken from its rows."""
    out, page = pages.copy(), pages.shape[1]
    for batch, at in enumerate(places(positions, length)):
        out[tables[batch, at // page], at % page] = rows[batch, at]
    return out


def paged_append(
    k: Array, v: Array, positions: Array, tables: Array, k_cache: Array, v_cache: Array
) -> tuple[Array, Array]:
    """The pages after the append; the arguments stay as they are."""
    k_pages, v_pages = f64(k_cache), f64(v_cache)
    rows = kv_append(k, v, positions, rows_of(k_pages, tables), rows_of(v_pages, tables))
    keys, values = (
        into_pages(pages, tables, made, positions, k.shape[1])
        for pages, made in zip((k_pages, v_pages), rows, strict=True)
    )
    return keys, values


def paged_rope_append(
    q: Array, k: Array, v: Array, positions: Array, tables: Array, cos: Array, sin: Array, k_cache: Array,
    v_cache: Array,
) -> tuple[F64, Array, Array]:  # fmt: skip
    """The turned queries, and the pages after the append; the arguments stay as they are."""
    at = places(positions, q.shape[1])
    c, s = cos[at][:, :, None], sin[at][:, :, None]  # (B, T, 1, D / 2)
    keys, values = paged_append(turn(k, c, s), v, positions, tables, k_cache, v_cache)
    return turn(q, c[:, :, None], s[:, :, None]), keys, values


def paged_norm_rope_append(
    q: Array, k: Array, v: Array, positions: Array, tables: Array, cos: Array, sin: Array, q_weight: Array,
    k_weight: Array, k_cache: Array, v_cache: Array, eps: float,
) -> tuple[F64, Array, Array]:  # fmt: skip
    """`paged_rope_append` of heads that are normed first."""
    heads = rmsnorm(q, q_weight, eps), rmsnorm(k, k_weight, eps)
    return paged_rope_append(*heads, v, positions, tables, cos, sin, k_cache, v_cache)


def paged_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, tables: Array, scale: float
) -> F64:  # (B, T, G, Q, D)
    keys, values = rows_of(k_cache, tables), rows_of(v_cache, tables)
    out = np.zeros(q.shape)
    for b, start in enumerate(positions):
        seen = slice(0, int(start) + q.shape[1])
        out[b] = grouped_attention(q[b : b + 1], keys[b : b + 1, seen], values[b : b + 1, seen], scale)[0]
    return out


def paged_decode_attention(
    q: Array, k_cache: Array, v_cache: Array, positions: Array, tables: Array, partial: Array, scale: float
) -> tuple[F64, F64]:
    """`partial` and `stats` for as many spans as `partial` has: see ops.toml."""
    keys, values = rows_of(k_cache, tables), rows_of(v_cache, tables)
    return grouped_decode_attention(q[:, 0], keys, values, positions, partial, scale)
