"""Attention with grouped queries, of whole sequences and of one new token each. Q heads of queries share one head of
keys and values, which a block reads once for BQ of them. Heads past Q are zeros; what is made of them is dropped."""

from __future__ import annotations

import cuda.tile as ct

from .attention import LEAST, LOG2_E, accumulate, load_kv, load_position, scores

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
    maximum = ct.full((ROWS, 1), -float("inf"), ct.float32)
    total = ct.zeros((ROWS, 1), ct.float32)
    acc = ct.zeros((ROWS, D), ct.float32)
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
    maximum = ct.full((BQ, 1), LEAST, ct.float32)
    total = ct.zeros((BQ, 1), ct.float32)
    acc = ct.zeros((BQ, D), ct.float32)
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
    column = (1, 1, BQ, 1, 1)
    ct.store(partial, index=(b, g, part, z, 0), tile=acc.reshape((1, 1, BQ, 1, D)), allow_tma=False)
    ct.store(stats, index=(b, g, part, z, 0), tile=maximum.reshape(column), allow_tma=False)
    ct.store(stats, index=(b, g, part, z, 1), tile=total.reshape(column), allow_tma=False)


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
