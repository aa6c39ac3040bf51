"""Attention: of whole sequences, and of one new token each over a cache of keys and values."""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]
LOG2_E = 1.4426950408889634
LEAST = -1e30  # below every score; finite, so that the difference of two of them is 0 and not NaN


def load_kv(array, b, i, h, count, D):
    """Tile i of `count` positions of one head, (count, D), zeros past the end."""
    shape = (1, count, 1, D)
    return ct.load(array, index=(b, i, h, 0), shape=shape, padding_mode=ct.PaddingMode.ZERO).reshape((count, D))


def scores(queries, keys, TF32):
    """queries @ keys.T in f32."""
    if TF32:
        keys = keys.astype(ct.tfloat32)
    zero = ct.zeros((queries.shape[0], keys.shape[0]), ct.float32)
    return ct.mma(queries, ct.permute(keys, (1, 0)), zero)


def nothing_yet(rows, D, least):
    """What the online softmax begins with: the maximum and the sum, (rows, 1), and the result, (rows, D)."""
    maximum = ct.full((rows, 1), least, ct.float32)
    return maximum, ct.zeros((rows, 1), ct.float32), ct.zeros((rows, D), ct.float32)


def accumulate(score, values, scale_log2, maximum, total, acc, TF32):
    """One step of the online softmax: a tile of scores and its values, to the running maximum, sum and result. Scores
    are in units of log 2 once scaled, so that exp2 serves for exp; its results below 2^-126 are 0."""
    risen = ct.maximum(maximum, ct.max(score, axis=1, keepdims=True) * scale_log2)
    rescale = ct.exp2(maximum - risen, flush_to_zero=True)
    p = ct.exp2(score * scale_log2 - risen, flush_to_zero=True)
    total = total * rescale + ct.sum(p, axis=1, keepdims=True)
    if TF32:
        acc = ct.mma(p.astype(ct.tfloat32), values.astype(ct.tfloat32), acc * rescale)
    else:
        acc = ct.mma(p.astype(values.dtype), values, acc * rescale)
    return risen, total, acc


def load_kv_directly(array, b, i, h, count, D):
    """As `rows`, without the copy engine."""
    shape, zero = (1, count, 1, D), ct.PaddingMode.ZERO
    return ct.load(array, index=(b, i, h, 0), shape=shape, padding_mode=zero, allow_tma=False).reshape((count, D))


def block(q, k, BT, GROUP):
    """A block's head, sequence and tile of queries, the position of the first of these, and 1, or 0 past the last
    sequence of the last group, where there is nothing to do. The T queries are the last of S positions. The first
    blocks take the last queries of all heads of GROUP sequences, which have the most keys, then those before them: the
    short ones fill the gaps at the end, and the keys and values of so many heads fit the L2 cache."""
    tiles = ct.cdiv(q.shape[1], BT)
    h, b, i = ct.bid(0), ct.bid(2) // tiles * GROUP + ct.bid(1), tiles - 1 - ct.bid(2) % tiles
    return h, b, i, k.shape[1] - q.shape[1] + i * BT, ct.where(b < q.shape[0], 1, 0)


def masked_tiles(queries, k, v, b, h, first, start, stop, scale_log2, maximum, total, acc, BS, D, COPIED, TF32):
    """The online softmax over the tiles from `start` to `stop`, with the causal mask. The first of them has a key for
    each query, so that the maximum is finite from there on. COPIED: by the copy engine, or by the threads."""
    q_place = (first + ct.arange(queries.shape[0], dtype=ct.int32))[:, None]
    for j in range(start, stop):
        keys = load_kv(k, b, j, h, BS, D) if COPIED else load_kv_directly(k, b, j, h, BS, D)
        score = scores(queries, keys, TF32)
        k_place = (j * BS + ct.arange(BS, dtype=ct.int32))[None, :]
        score = ct.where(k_place <= q_place, score, -float("inf"))
        values = load_kv(v, b, j, h, BS, D) if COPIED else load_kv_directly(v, b, j, h, BS, D)
        maximum, total, acc = accumulate(score, values, scale_log2, maximum, total, acc, TF32)
    return maximum, total, acc


def load_position(positions, b):
    """The position of a sequence's new token."""
    return ct.load(positions, index=(b,), shape=(1,), allow_tma=False).item()


def load_head(heads, b, h, D):
    """One head of one sequence's token, (1, D)."""
    return ct.load(heads, index=(b, h, 0), shape=(1, 1, D), allow_tma=False).reshape((1, D))


def load_new(q, k, v, b, h, D):
    """The query, and the new key and value, (1, D) each."""
    return load_head(q, b, h, D), load_head(k, b, h, D), load_head(v, b, h, D)


def append(k_cache, v_cache, key, value, b, position, h, D):
    """Store the new key and value."""
    ct.store(k_cache, index=(b, position, h, 0), tile=key.reshape((1, 1, 1, D)), allow_tma=False)
    ct.store(v_cache, index=(b, position, h, 0), tile=value.reshape((1, 1, 1, D)), allow_tma=False)


def store_span(partial, stats, b, h, z, acc, maximum, total, shape, D):
    """A span's result for `merge_attention`: the first row or column, of this shape, of the weighted sum of values; the
    maximum (stat 0) and the sum of weights (stat 1)."""
    ct.store(partial, index=(b, h, z, 0), tile=ct.extract(acc, (0, 0), shape).reshape((1, 1, 1, D)), allow_tma=False)
    ct.store(stats, index=(b, h, z, 0), tile=ct.extract(maximum, (0, 0), (1, 1)).reshape((1, 1, 1, 1)), allow_tma=False)
    ct.store(stats, index=(b, h, z, 1), tile=ct.extract(total, (0, 0), (1, 1)).reshape((1, 1, 1, 1)), allow_tma=False)


def flash(q, k, v, out, scale, D, BT, BS, GROUP, TF32):
    """Flash attention: one block makes BT queries of one head, walking the keys in tiles of BS: first those that all
    its queries see, then those that the causal mask cuts."""
    h, b, i, first, there = block(q, k, BT, GROUP)
    ct.grid_dependency_control_wait()
    whole = there * ((first + 1) // BS)
    steps = there * ct.cdiv(ct.minimum(first + BT, k.shape[1]), BS)

    queries = load_kv(q, b, i, h, BT, D)
    if TF32:
        queries = queries.astype(ct.tfloat32)
    scale_log2 = scale * LOG2_E
    maximum, total, acc = nothing_yet(BT, D, -float("inf"))
    for j in range(whole):
        score = scores(queries, load_kv(k, b, j, h, BS, D), TF32)
        values = load_kv(v, b, j, h, BS, D)
        maximum, total, acc = accumulate(score, values, scale_log2, maximum, total, acc, TF32)
    _, total, acc = masked_tiles(
        queries, k, v, b, h, first, whole, steps, scale_log2, maximum, total, acc, BS, D, True, TF32
    )  # fmt: skip
    ct.store(out, index=(b, i, h, 0), tile=(acc * (1.0 / total)).astype(out.dtype).reshape((1, BT, 1, D)))


@ct.kernel
def attention(q, k, v, out, scale, D: ConstInt, BT: ConstInt, BS: ConstInt, GROUP: ConstInt, TF32: ConstBool):
    flash(q, k, v, out, scale, D, BT, BS, GROUP, TF32)


@ct.kernel
def attention_to_f8(q, k, v, out, scale, D: ConstInt, BT: ConstInt, BS: ConstInt, GROUP: ConstInt):
    """The same with a result in 8 bits"""
    flash(q, k, v, out, scale, D, BT, BS, GROUP, False)


@ct.kernel
def decode_attention(
    q, k, v, positions, k_cache, v_cache, partial, stats, scale, D: ConstInt, BS: ConstInt, SPAN: ConstInt, R: ConstInt
):
    """One block makes one head's query of one sequence over SPAN positions of the cache: what `merge_attention` puts
    together. The block of the new position appends its key and value. The query is repeated R times, as many rows as
    the tensor cores want."""
    z, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    position = load_position(positions, b)
    first = z * SPAN
    query = ct.broadcast_to(load_head(q, b, h, D), (R, D))
    scale_log2 = scale * LOG2_E
    maximum, total, acc = nothing_yet(R, D, LEAST)

    before = ct.minimum(first + SPAN, position)  # positions of this span that were there before
    for j in range(first // BS, before // BS):
        score = scores(query, load_kv(k_cache, b, j, h, BS, D), False)
        values = load_kv(v_cache, b, j, h, BS, D)
        maximum, total, acc = accumulate(score, values, scale_log2, maximum, total, acc, False)
    if first <= position and position < first + SPAN:
        key = load_head(k, b, h, D)
        value = load_head(v, b, h, D)
        # The tile with the new position. What lies past it is not ours and may be anything, NaN too.
        j = position // BS
        place = j * BS + ct.arange(BS, dtype=ct.int32)
        column = place[:, None]
        keys = ct.where(column == position, key, load_kv(k_cache, b, j, h, BS, D))
        values = ct.where(column == position, value, load_kv(v_cache, b, j, h, BS, D))
        score = ct.where((place <= position)[None, :], scores(query, keys, False), -float("inf"))
        values = ct.where(column <= position, values, 0.0)
        maximum, total, acc = accumulate(score, values, scale_log2, maximum, total, acc, False)
        append(k_cache, v_cache, key, value, b, position, h, D)

    store_span(partial, stats, b, h, z, acc, maximum, total, (1, D), D)


@ct.kernel
def decode_attention_one_head(q, k, v, positions, k_cache, v_cache, partial, stats, scale, D: ConstInt, SPAN: ConstInt):
    """The same with all of a span in one tile, multiplied element by element: its keys and values are read before the
    wait, for only this kernel writes them. What lies past the new position is not ours and may be anything, NaN too;
    blocks whose span is all past it read the first such span, which costs the memory's traffic once."""
    z, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    position = load_position(positions, b)
    near = ct.minimum(z, position // SPAN + 1)
    keys, values = load_kv(k_cache, b, near, h, SPAN, D), load_kv(v_cache, b, near, h, SPAN, D)
    place = (z * SPAN + ct.arange(SPAN, dtype=ct.int32))[:, None]
    there = place <= position
    ct.grid_dependency_control_wait()
    query = load_head(q, b, h, D).astype(ct.float32)
    key = load_head(k, b, h, D)
    value = load_head(v, b, h, D)
    keys = ct.where(place == position, key, keys).astype(ct.float32)
    values = ct.where(there, ct.where(place == position, value, values), 0.0).astype(ct.float32)
    score = ct.sum(keys * query, axis=1, keepdims=True) * (scale * LOG2_E)
    score = ct.where(there, score, LEAST)
    maximum = ct.max(score, axis=0, keepdims=True)
    p = ct.where(there, ct.exp2(score - maximum, flush_to_zero=True), 0.0)
    acc = ct.sum(p * values, axis=0, keepdims=True)
    ct.store(partial, index=(b, h, z, 0), tile=acc.reshape((1, 1, 1, D)), allow_tma=False)
    ct.store(stats, index=(b, h, z, 0), tile=maximum.reshape((1, 1, 1, 1)), allow_tma=False)
    total = ct.sum(p, axis=0, keepdims=True)
    ct.store(stats, index=(b, h, z, 1), tile=total.reshape((1, 1, 1, 1)), allow_tma=False)
    if z * SPAN <= position and position < z * SPAN + SPAN:
        append(k_cache, v_cache, key, value, b, position, h, D)


def load_spans(stats, partial, b, h, j, D, BZ):
    """The maxima and sums (BZ, 1) and the partial results (1, 1, BZ, D) of spans BZ j and on; zeros past the
    last span."""
    zero = ct.PaddingMode.ZERO
    at = (1, 1, BZ, 1)
    tops = ct.load(stats, index=(b, h, j, 0), shape=at, padding_mode=zero, allow_tma=False).reshape((BZ, 1))
    sums = ct.load(stats, index=(b, h, j, 1), shape=at, padding_mode=zero, allow_tma=False).reshape((BZ, 1))
    part = ct.load(partial, index=(b, h, j, 0), shape=(1, 1, BZ, D), padding_mode=zero, allow_tma=False)
    return tops, sums, part


def store_head(out, b, h, result, D):
    stored = result.astype(out.dtype)
    ct.store(out, index=(b, h, 0), tile=stored.reshape((1, 1, D)), allow_tma=False)


@ct.kernel
def merge_attention(partial, stats, out, D: ConstInt, BZ: ConstInt):
    """One block puts one head's spans together, BZ at a time."""
    h, b = ct.bid(0), ct.bid(1)
    spans = partial.shape[2]
    maximum, total, acc = nothing_yet(1, D, LEAST)
    for j in range(ct.cdiv(spans, BZ)):
        there = ((j * BZ + ct.arange(BZ, dtype=ct.int32)) < spans)[:, None]
        tops, sums, part = load_spans(stats, partial, b, h, j, D, BZ)
        tops = ct.where(there, tops, LEAST)
        risen = ct.maximum(maximum, ct.max(tops, axis=0, keepdims=True))
        rescale, weights = ct.exp2(maximum - risen), ct.exp2(tops - risen)
        total = total * rescale + ct.sum(sums * weights, axis=0, keepdims=True)
        acc = acc * rescale + ct.sum(part.reshape((BZ, D)) * weights, axis=0, keepdims=True)
        maximum = risen
    store_head(out, b, h, acc * (1.0 / total), D)


@ct.kernel
def merge_attention_single_pass(partial, stats, out, D: ConstInt, BZ: ConstInt):
    """One block puts one head's spans together, all BZ at once."""
    h, b = ct.bid(0), ct.bid(1)
    zero = ct.PaddingMode.ZERO
    at = (1, 1, BZ, 1)
    tops = ct.load(stats, index=(b, h, 0, 0), shape=at, padding_mode=zero, allow_tma=False).reshape((BZ, 1))
    sums = ct.load(stats, index=(b, h, 0, 1), shape=at, padding_mode=zero, allow_tma=False).reshape((BZ, 1))
    part = ct.load(partial, index=(b, h, 0, 0), shape=(1, 1, BZ, D), padding_mode=zero, allow_tma=False)
    tops = ct.where((ct.arange(BZ, dtype=ct.int32) < partial.shape[2])[:, None], tops, LEAST)
    weights = ct.exp2(tops - ct.max(tops, axis=0, keepdims=True))
    total = ct.sum(sums * weights, axis=0, keepdims=True)
    acc = ct.sum(part.reshape((BZ, D)) * weights, axis=0, keepdims=True)
    ct.store(out, index=(b, h, 0), tile=(acc * (1.0 / total)).astype(out.dtype).reshape((1, 1, D)), allow_tma=False)
