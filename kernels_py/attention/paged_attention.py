"""Causal attention over a cache in pages, with grouped queries: Q heads of queries share one head of keys. Query t of
sequence b stands at position positions[b] + t and sees the keys up to its own. What stands behind a sequence's last
position may be anything, NaN too."""

from __future__ import annotations

import cuda.tile as ct

from ..cache.pages import page_of
from .attention import LEAST, LOG2_E, accumulate, load_kv, load_position, nothing_yet, scores

ConstInt = ct.Constant[int]


def walk_pages(q, k_cache, v_cache, positions, tables, b, g, part, i, span, scale, D, BT, BQ, ROWS, BS):
    """The online softmax of BT queries of BQ heads, ROWS = BT BQ rows of one tile, heads first. The hole `span` says
    which keys are walked: first the tiles that all these queries see, then those that the causal mask cuts. Returns
    maximum and sum (ROWS, 1) and the weighted sum of values (ROWS, D)."""
    start = load_position(positions, b)
    first, end = start + i * BT, start + q.shape[1]
    whole, steps = (first + 1) // BS, ct.cdiv(ct.minimum(first + BT, end), BS)
    begin, whole, stop = span(whole, steps)
    per_page = k_cache.shape[1] // BS

    at, zero = (1, BT, 1, BQ, D), ct.PaddingMode.ZERO
    queries = ct.load(q, index=(b, i, g, part, 0), shape=at, padding_mode=zero).reshape((ROWS, D))
    scale_log2 = scale * LOG2_E
    maximum, total, acc = nothing_yet(ROWS, D, LEAST)
    for j in range(begin, whole):
        page, tile = page_of(tables, b, j, per_page)
        score = scores(queries, load_kv(k_cache, page, tile, g, BS, D), False)
        values = load_kv(v_cache, page, tile, g, BS, D)
        maximum, total, acc = accumulate(score, values, scale_log2, maximum, total, acc, False)
    q_place = (first + ct.arange(ROWS, dtype=ct.int32) // BQ)[:, None]
    for j in range(whole, stop):
        page, tile = page_of(tables, b, j, per_page)
        k_place = j * BS + ct.arange(BS, dtype=ct.int32)
        score = scores(queries, load_kv(k_cache, page, tile, g, BS, D), False)
        score = ct.where(k_place[None, :] <= q_place, score, -float("inf"))
        values = ct.where((k_place < end)[:, None], load_kv(v_cache, page, tile, g, BS, D), 0.0)
        maximum, total, acc = accumulate(score, values, scale_log2, maximum, total, acc, False)
    return maximum, total, acc


@ct.kernel
def paged_attention(
    q, k_cache, v_cache, positions, tables, out, scale, D: ConstInt, BT: ConstInt, BQ: ConstInt, ROWS: ConstInt,
    BS: ConstInt,
):  # fmt: skip
    """One block makes BT queries of BQ heads over all keys that they see."""
    parts = ct.cdiv(q.shape[3], BQ)
    g, part, b, i = ct.bid(0) // parts, ct.bid(0) % parts, ct.bid(1), ct.bid(2)

    def span(whole, steps):
        return 0, whole, steps

    _, total, acc = walk_pages(q, k_cache, v_cache, positions, tables, b, g, part, i, span, scale, D, BT, BQ, ROWS, BS)
    result = (acc * (1.0 / total)).astype(out.dtype)
    ct.store(out, index=(b, i, g, part, 0), tile=result.reshape((1, BT, 1, BQ, D)))


@ct.kernel
def paged_decode_attention(
    q, k_cache, v_cache, positions, tables, partial, stats, scale, D: ConstInt, BT: ConstInt, BQ: ConstInt,
    ROWS: ConstInt, BS: ConstInt, SPAN: ConstInt,
):  # fmt: skip
    """One block makes one query of BQ heads over SPAN positions: what `merge_attention` puts together."""
    parts = ct.cdiv(q.shape[3], BQ)
    g, part, b, z = ct.bid(0) // parts, ct.bid(0) % parts, ct.bid(1), ct.bid(2)

    def span(whole, steps):
        begin, last = z * (SPAN // BS), (z + 1) * (SPAN // BS)
        return begin, ct.maximum(ct.minimum(whole, last), begin), ct.minimum(steps, last)

    maximum, total, acc = walk_pages(
        q, k_cache, v_cache, positions, tables, b, g, part, 0, span, scale, D, BT, BQ, ROWS, BS
    )
    column = (1, 1, BQ, 1, 1)
    ct.store(partial, index=(b, g, part, z, 0), tile=acc.reshape((1, 1, BQ, 1, D)), allow_tma=False)
    ct.store(stats, index=(b, g, part, z, 0), tile=maximum.reshape(column), allow_tma=False)
    ct.store(stats, index=(b, g, part, z, 1), tile=total.reshape(column), allow_tma=False)
