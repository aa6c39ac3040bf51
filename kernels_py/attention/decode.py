"""Attention of one new token each over a cache of keys and values, on the tensor cores."""

from __future__ import annotations

import cuda.tile as ct

from .attention import (
    LEAST,
    LOG2_E,
    append,
    load_kv,
    load_new,
    load_position,
    store_head,
    store_span,
)

ConstInt = ct.Constant[int]


def whole_span(score, values, D, R):
    """The maximum (1, R), the sum (1, R) and the weighted values (D, R) of a span before the new position, from its
    scores (SPAN, R)."""
    maximum = ct.max(score, axis=0, keepdims=True)
    p = ct.exp2(score - maximum, flush_to_zero=True)
    total = ct.sum(p, axis=0, keepdims=True)
    acc = ct.mma(ct.permute(values, (1, 0)), p.astype(values.dtype), ct.zeros((D, R), ct.float32))
    return maximum, total, acc


def span_with_new(score, new, values, value, place, position, D, R):
    """The same from the new position on, whose score and value are `new` and `value`: what lies past it is not ours."""
    score = ct.where(place < position, score, ct.where(place == position, new, LEAST))
    maximum = ct.max(score, axis=0, keepdims=True)
    p = ct.where(place <= position, ct.exp2(score - maximum, flush_to_zero=True), 0.0)
    total = ct.sum(p, axis=0, keepdims=True)
    nothing = ct.zeros((1, D), values.dtype)
    values = ct.where(place < position, values, ct.where(place == position, value, nothing))
    acc = ct.mma(ct.permute(values, (1, 0)), p.astype(values.dtype), ct.zeros((D, R), ct.float32))
    return maximum, total, acc


@ct.kernel
def decode_attention_swap_ab(
    q, k, v, positions, k_cache, v_cache, partial, stats, scale, D: ConstInt, SPAN: ConstInt, R: ConstInt
):
    """decode_attention_one_head of `attention` on the tensor cores with swapped operands: a span's keys are the rows of
    the tile; its columns are the query, repeated R times, the fewest that the cores take. Only blocks from the new
    position on mask anything."""
    z, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    position = load_position(positions, b)
    near = ct.minimum(z, position // SPAN + 1)
    keys, values = load_kv(k_cache, b, near, h, SPAN, D), load_kv(v_cache, b, near, h, SPAN, D)
    first = z * SPAN
    ct.grid_dependency_control_wait()
    query, key, value = load_new(q, k, v, b, h, D)
    queries = ct.permute(ct.broadcast_to(query, (R, D)), (1, 0))
    score = ct.mma(keys, queries, ct.zeros((SPAN, R), ct.float32)) * (scale * LOG2_E)
    if first + SPAN <= position:
        maximum, total, acc = whole_span(score, values, D, R)
    else:
        new = ct.sum(query.astype(ct.float32) * key.astype(ct.float32), axis=1, keepdims=True) * (scale * LOG2_E)
        place = (first + ct.arange(SPAN, dtype=ct.int32))[:, None]
        maximum, total, acc = span_with_new(score, new, values, value, place, position, D, R)
        if first <= position:
            append(k_cache, v_cache, key, value, b, position, h, D)
    store_span(partial, stats, b, h, z, acc, maximum, total, (D, 1), D)


def walk(q, k, v, positions, k_cache, v_cache, scale, z, h, b, D, BS, TILES, R):
    """Online softmax over span z, which has TILES tiles of BS positions, or all of them if TILES is 0; appends the new
    key and value if the span has their position. That tile, or the span's last before it, comes first: it alone is
    masked, and read before the wait. The query is repeated R times. Returns the maximum (1, R), the sum (1, R) and the
    result (D, R) before it is divided by that."""
    position = load_position(positions, b)
    first = z * TILES
    last = position // BS
    if TILES > 0:
        last = ct.maximum(ct.minimum(last, first + TILES - 1), first)
    keys, values = load_kv(k_cache, b, last, h, BS, D), load_kv(v_cache, b, last, h, BS, D)
    place = (last * BS + ct.arange(BS, dtype=ct.int32))[:, None]
    ct.grid_dependency_control_wait()
    query, key, value = load_new(q, k, v, b, h, D)
    # Before the loop reads its caches: were it behind, each load's end would be waited for.
    if TILES == 0 or (first * BS <= position and position < (first + TILES) * BS):
        append(k_cache, v_cache, key, value, b, position, h, D)
    queries = ct.permute(ct.broadcast_to(query, (R, D)), (1, 0))
    scale_log2 = scale * LOG2_E
    none = ct.zeros((BS, R), ct.float32)

    new = ct.sum(query.astype(ct.float32) * key.astype(ct.float32), axis=1, keepdims=True) * scale_log2
    score = ct.mma(keys, queries, none) * scale_log2
    score = ct.where(place < position, score, ct.where(place == position, new, LEAST))
    maximum = ct.max(score, axis=0, keepdims=True)
    p = ct.exp2(score - maximum, flush_to_zero=True)
    if TILES > 0:  # of an empty span the maximum is the least, and every power 1
        p = ct.where(place <= position, p, 0.0)
    total = ct.sum(p, axis=0, keepdims=True)
    nothing = ct.zeros((1, D), values.dtype)
    values = ct.where(place < position, values, ct.where(place == position, value, nothing))
    acc = ct.mma(ct.permute(values, (1, 0)), p.astype(values.dtype), ct.zeros((D, R), ct.float32))
    for j in range(first, last):
        keys, values = load_kv(k_cache, b, j, h, BS, D), load_kv(v_cache, b, j, h, BS, D)
        score = ct.mma(keys, queries, none) * scale_log2
        risen = ct.maximum(maximum, ct.max(score, axis=0, keepdims=True))
        rescale = ct.exp2(maximum - risen, flush_to_zero=True)
        p = ct.exp2(score - risen, flush_to_zero=True)
        total = total * rescale + ct.sum(p, axis=0, keepdims=True)
        acc = ct.mma(ct.permute(values, (1, 0)), p.astype(values.dtype), acc * rescale)
        maximum = risen
    return maximum, total, acc


@ct.kernel
def decode_attention_looped(
    q, k, v, positions, k_cache, v_cache, partial, stats, scale, D: ConstInt, BS: ConstInt, SPAN: ConstInt, R: ConstInt
):
    """decode_attention over long spans, in several tiles."""
    z, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    maximum, total, acc = walk(q, k, v, positions, k_cache, v_cache, scale, z, h, b, D, BS, SPAN // BS, R)
    store_span(partial, stats, b, h, z, acc, maximum, total, (D, 1), D)


@ct.kernel
def decode_attention_unsplit(q, k, v, positions, k_cache, v_cache, out, scale, D: ConstInt, BS: ConstInt, R: ConstInt):
    """One block makes one head's query of one sequence over all of its cache."""
    h, b = ct.bid(0), ct.bid(1)
    _, total, acc = walk(q, k, v, positions, k_cache, v_cache, scale, 0, h, b, D, BS, 0, R)
    store_head(out, b, h, ct.extract(acc * (1.0 / total), (0, 0), (D, 1)), D)
