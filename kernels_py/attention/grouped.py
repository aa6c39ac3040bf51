"""Attention with grouped queries, of whole sequences and of one new token each. Q heads of queries share one head of
keys and values, which a block reads once for BQ of them. Heads past Q are zeros; what is made of them is dropped."""

from __future__ import annotations

import cuda.tile as ct

from ..cache.rope_append import as_they_are, turn
from .attention import LEAST, LOG2_E, accumulate, load_kv, load_position, nothing_yet, scores
from .decode import span_with_new, whole_span

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]


@ct.kernel
def grouped_attention(
    q, k, v, out, scale, D: ConstInt, BT: ConstInt, BQ: ConstInt, ROWS: ConstInt, BS: ConstInt, GROUP: ConstInt,
    TF32: ConstBool,
):  # fmt: skip
    """Flash attention: one block makes BT queries of BQ heads, ROWS = BT BQ rows of one tile, heads first. The order of
    the blocks is that of `attention`."""
    tiles, parts = ct.cdiv(q.shape[1], BT), ct.cdiv(q.shape[3], BQ)
    g, part = ct.bid(0) // parts, ct.bid(0) % parts
    b, i = ct.bid(2) // tiles * GROUP + ct.bid(1), tiles - 1 - ct.bid(2) % tiles
    first = k.shape[1] - q.shape[1] + i * BT
    there = ct.where(b < q.shape[0], 1, 0)  # 0 past the last sequence: nothing to do
    ct.grid_dependency_control_wait()
    whole = there * ((first + 1) // BS)
    steps = there * ct.cdiv(ct.minimum(first + BT, k.shape[1]), BS)

    at, zero = (1, BT, 1, BQ, D), ct.PaddingMode.ZERO
    queries = ct.load(q, index=(b, i, g, part, 0), shape=at, padding_mode=zero).reshape((ROWS, D))
    if TF32:
        queries = queries.astype(ct.tfloat32)
    scale_log2 = scale * LOG2_E
    maximum, total, acc = nothing_yet(ROWS, D, -float("inf"))
    for j in range(whole):
        score = scores(queries, load_kv(k, b, j, g, BS, D), TF32)
        values = load_kv(v, b, j, g, BS, D)
        maximum, total, acc = accumulate(score, values, scale_log2, maximum, total, acc, TF32)
    q_place = (first + ct.arange(ROWS, dtype=ct.int32) // BQ)[:, None]
    for j in range(whole, steps):
        score = scores(queries, load_kv(k, b, j, g, BS, D), TF32)
        k_place = (j * BS + ct.arange(BS, dtype=ct.int32))[None, :]
        score = ct.where(k_place <= q_place, score, -float("inf"))
        values = load_kv(v, b, j, g, BS, D)
        maximum, total, acc = accumulate(score, values, scale_log2, maximum, total, acc, TF32)
    result = (acc * (1.0 / total)).astype(out.dtype)
    ct.store(out, index=(b, i, g, part, 0), tile=result.reshape(at))


def walk(q, k_cache, v_cache, b, g, part, position, first, behind, scale, D, BQ, BS):
    """The online softmax of BQ queries over the positions from `first` to `behind` that are written: up to `position`.
    Behind that the cache may hold anything, NaN too. Returns maximum and sum (BQ, 1) and weighted values (BQ, D)."""
    at, zero = (1, 1, BQ, D), ct.PaddingMode.ZERO
    queries = ct.load(q, index=(b, g, part, 0), shape=at, padding_mode=zero).reshape((BQ, D))
    scale_log2 = scale * LOG2_E
    maximum, total, acc = nothing_yet(BQ, D, LEAST)
    for j in range(first // BS, ct.minimum(behind, position) // BS):
        score = scores(queries, load_kv(k_cache, b, j, g, BS, D), False)
        values = load_kv(v_cache, b, j, g, BS, D)
        maximum, total, acc = accumulate(score, values, scale_log2, maximum, total, acc, False)
    if first <= position and position < behind:
        j = position // BS
        written = j * BS + ct.arange(BS, dtype=ct.int32) <= position
        score = scores(queries, load_kv(k_cache, b, j, g, BS, D), False)
        score = ct.where(written[None, :], score, -float("inf"))
        values = ct.where(written[:, None], load_kv(v_cache, b, j, g, BS, D), 0.0)
        maximum, total, acc = accumulate(score, values, scale_log2, maximum, total, acc, False)
    return maximum, total, acc


def store_group_span(partial, stats, b, g, part, z, acc, maximum, total, BQ, D):
    """A span's result for `merge_attention`, as `store_span` stores it, of BQ queries."""
    column = (1, 1, BQ, 1, 1)
    ct.store(partial, index=(b, g, part, z, 0), tile=acc.reshape((1, 1, BQ, 1, D)), allow_tma=False)
    ct.store(stats, index=(b, g, part, z, 0), tile=maximum.reshape(column), allow_tma=False)
    ct.store(stats, index=(b, g, part, z, 1), tile=total.reshape(column), allow_tma=False)


@ct.kernel
def grouped_decode_attention(
    q, k_cache, v_cache, positions, partial, stats, scale, D: ConstInt, BQ: ConstInt, BS: ConstInt, SPAN: ConstInt
):
    """One block makes the queries of one head of keys over SPAN positions of the cache: what `merge_attention` puts
    together."""
    parts = ct.cdiv(q.shape[2], BQ)
    g, part, b, z = ct.bid(0) // parts, ct.bid(0) % parts, ct.bid(1), ct.bid(2)
    first = z * SPAN
    position = load_position(positions, b)
    maximum, total, acc = walk(
        q, k_cache, v_cache, b, g, part, position, first, first + SPAN, scale, D, BQ, BS
    )  # fmt: skip
    store_group_span(partial, stats, b, g, part, z, acc, maximum, total, BQ, D)


@ct.kernel
def grouped_decode_attention_unsplit(
    q, k_cache, v_cache, positions, out, scale, D: ConstInt, BQ: ConstInt, BS: ConstInt
):
    """One block makes the queries of one head of keys over all of its cache."""
    parts = ct.cdiv(q.shape[2], BQ)
    g, part, b = ct.bid(0) // parts, ct.bid(0) % parts, ct.bid(1)
    position = load_position(positions, b)
    _, total, acc = walk(
        q, k_cache, v_cache, b, g, part, position, 0, position + 1, scale, D, BQ, BS
    )  # fmt: skip
    result = (acc * (1.0 / total)).astype(out.dtype)
    ct.store(out, index=(b, g, part, 0), tile=result.reshape((1, 1, BQ, D)), allow_tma=False)


def load_halves(heads, b, g, BQ, E):
    """Both halves of at most BQ heads, (BQ, E) each; zeros past the last head."""
    at, zero = (1, 1, BQ, E), ct.PaddingMode.ZERO
    first = ct.load(heads, index=(b, g, 0, 0), shape=at, padding_mode=zero, allow_tma=False).reshape((BQ, E))
    second = ct.load(heads, index=(b, g, 0, 1), shape=at, padding_mode=zero, allow_tma=False).reshape((BQ, E))
    return first, second


@ct.kernel
def rope_decode_attention(
    q, k, v, positions, cos, sin, k_cache, v_cache, partial, stats, scale, D: ConstInt, E: ConstInt, BQ: ConstInt,
    SPAN: ConstInt,
):  # fmt: skip
    """Rotary positions, the append to the cache, and attention over it, with swapped operands: a span's keys are the
    rows of the tile, its columns are the at most BQ queries that share them. The span is read before the wait, for only
    this kernel writes it; only blocks from the new position on mask anything. Keys are read as two halves, as they are
    turned."""
    z, g, b = ct.bid(0), ct.bid(1), ct.bid(2)
    position = load_position(positions, b)
    near = ct.minimum(z, position // SPAN + 1)
    half, zero = (1, SPAN, 1, E), ct.PaddingMode.ZERO
    keys1 = ct.load(k_cache, index=(b, near, g, 0), shape=half, padding_mode=zero).reshape((SPAN, E))
    keys2 = ct.load(k_cache, index=(b, near, g, 1), shape=half, padding_mode=zero).reshape((SPAN, E))
    values = load_kv(v_cache, b, near, g, SPAN, D)
    c = ct.load(cos, index=(position, 0), shape=(1, E), allow_tma=False)
    s = ct.load(sin, index=(position, 0), shape=(1, E), allow_tma=False)
    first = z * SPAN
    ct.grid_dependency_control_wait()
    x1, x2 = load_halves(q, b, g, BQ, E)
    k1 = ct.load(k, index=(b, g, 0), shape=(1, 1, E), allow_tma=False).reshape((1, E))
    k2 = ct.load(k, index=(b, g, 1), shape=(1, 1, E), allow_tma=False).reshape((1, E))
    value = ct.load(v, index=(b, g, 0), shape=(1, 1, D), allow_tma=False).reshape((1, D))
    y1, y2 = turn(*as_they_are(x1, x2), c, s)
    q1, q2 = y1.astype(q.dtype), y2.astype(q.dtype)
    score = ct.mma(keys1, ct.permute(q1, (1, 0)), ct.zeros((SPAN, BQ), ct.float32))
    score = ct.mma(keys2, ct.permute(q2, (1, 0)), score) * (scale * LOG2_E)
    if first + SPAN <= position:
        maximum, total, acc = whole_span(score, values, D, BQ)
    else:
        t1, t2 = turn(*as_they_are(k1, k2), c, s)
        t1, t2 = t1.astype(k_cache.dtype), t2.astype(k_cache.dtype)
        with_key = q1.astype(ct.float32) * t1.astype(ct.float32) + q2.astype(ct.float32) * t2.astype(ct.float32)
        new = ct.permute(ct.sum(with_key, axis=1, keepdims=True), (1, 0)) * (scale * LOG2_E)
        place = (first + ct.arange(SPAN, dtype=ct.int32))[:, None]
        maximum, total, acc = span_with_new(score, new, values, value, place, position, D, BQ)
        if first <= position:
            row = (1, 1, 1, E)
            ct.store(k_cache, index=(b, position, g, 0), tile=t1.reshape(row), allow_tma=False)
            ct.store(k_cache, index=(b, position, g, 1), tile=t2.reshape(row), allow_tma=False)
            ct.store(v_cache, index=(b, position, g, 0), tile=value.reshape((1, 1, 1, D)), allow_tma=False)
    turned_acc = ct.permute(acc, (1, 0)).reshape((1, 1, BQ, 1, D))
    column = (1, 1, BQ, 1, 1)
    ct.store(partial, index=(b, g, 0, z, 0), tile=turned_acc, allow_tma=False)
    ct.store(stats, index=(b, g, 0, z, 0), tile=maximum.reshape(column), allow_tma=False)
    ct.store(stats, index=(b, g, 0, z, 1), tile=total.reshape(column), allow_tma=False)
