"""A cache of keys and values in 8-bit floats (e4m3), with a scale for each head of each position: appending to it, and
attention over it. A head is rounded as quantize_rows rounds a row. Scales lie by heads, (B, G, P): those of consecutive
positions side by side."""

from __future__ import annotations

import cuda.tile as ct

from ..cache.rope_append import as_they_are, norm_rope_and_append, rope_and_append
from ..eight_bits.quantize import LARGEST, scale_within
from .attention import LEAST, LOG2_E, load_position, nothing_yet, scores
from .grouped import store_group_span

ConstInt = ct.Constant[int]


def largest_in(value):
    return ct.max(abs(value), axis=1, propagate_nan=True)


def append_rounded(head, cache, scales, b, at, g):
    """Rounds a head, (1, D) in f32, to its place in the cache."""
    scale = scale_within(largest_in(head), LARGEST)
    ct.store(scales, index=(b, g, at), tile=scale.reshape((1, 1, 1)), allow_tma=False)
    rounded = (head * (1.0 / scale)[:, None]).astype(cache.dtype)
    ct.store(cache, index=(b, at, g, 0), tile=rounded.reshape((1, 1, 1, head.shape[1])))


def append_rounded_halves(first, second, cache, scales, b, at, g):
    """The same of a head in two halves"""
    largest = ct.maximum(largest_in(first), largest_in(second), propagate_nan=True)
    scale = scale_within(largest, LARGEST)
    ct.store(scales, index=(b, g, at), tile=scale.reshape((1, 1, 1)), allow_tma=False)
    inverse, half = (1.0 / scale)[:, None], (1, 1, 1, first.shape[1])
    ct.store(cache, index=(b, at, g, 0), tile=(first * inverse).astype(cache.dtype).reshape(half))
    ct.store(cache, index=(b, at, g, 1), tile=(second * inverse).astype(cache.dtype).reshape(half))


def head_of(heads, b, t, h, D):
    return ct.load(heads, index=(b, t, h, 0), shape=(1, 1, 1, D)).reshape((1, D)).astype(ct.float32)


@ct.kernel
def kv_append_f8(k, v, positions, k_cache, v_cache, k_scales, v_scales, D: ConstInt):
    """k_cache[b, positions[b] + t] = k[b, t] rounded, likewise v."""
    t, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    place = ct.load(positions, index=(b,), shape=(1,)).item() + t
    append_rounded(head_of(k, b, t, h, D), k_cache, k_scales, b, place, h)
    append_rounded(head_of(v, b, t, h, D), v_cache, v_scales, b, place, h)


@ct.kernel
def rope_append_f8(
    q, k, v, positions, cos, sin, turned, k_cache, v_cache, k_scales, v_scales, D: ConstInt, E: ConstInt, BQ: ConstInt
):
    """Turned keys are rounded to k's dtype first, as other caches have them."""

    def append(first, second, value, own, at, g):
        first, second = as_they_are(first.astype(k.dtype), second.astype(k.dtype))
        append_rounded_halves(first, second, k_cache, k_scales, own, at, g)
        append_rounded(value.reshape((1, D)).astype(ct.float32), v_cache, v_scales, own, at, g)

    rope_and_append(q, k, v, positions, cos, sin, turned, D, E, BQ, append)


@ct.kernel
def norm_rope_append_f8(
    q, k, v, positions, cos, sin, q_weight, k_weight, turned, k_cache, v_cache, k_scales, v_scales, eps, D: ConstInt,
    E: ConstInt, BQ: ConstInt,
):  # fmt: skip
    """The same of heads that are normed first, as Qwen3 does."""

    def append(first, second, value, own, at, g):
        first, second = as_they_are(first.astype(k.dtype), second.astype(k.dtype))
        append_rounded_halves(first, second, k_cache, k_scales, own, at, g)
        append_rounded(value.reshape((1, D)).astype(ct.float32), v_cache, v_scales, own, at, g)

    norm_rope_and_append(q, k, v, positions, cos, sin, q_weight, k_weight, turned, eps, D, E, BQ, append)


def load_narrow(cache, scales, b, j, g, BS, D):
    """Tile j of the keys or values of one head as stored, (BS, D) in f16, and their scales, (1, BS). Every e4m3 is a
    number of f16, and one instruction makes two of them."""
    zero = ct.PaddingMode.ZERO
    tile = ct.load(cache, index=(b, j, g, 0), shape=(1, BS, 1, D), padding_mode=zero)
    scale = ct.load(scales, index=(b, g, j), shape=(1, 1, BS), padding_mode=zero, allow_tma=False)
    return tile.reshape((BS, D)).astype(ct.float16), scale.reshape((1, BS))


def narrow_step(
    queries, factor, k_cache, v_cache, k_scales, v_scales, b, g, j, BS, D, maximum, total, acc, position, LAST
):  # fmt: skip
    """A step over tile j. The LAST one is masked: what stands behind the token may be anything, NaN too. Scores are
    multiplied by the scales of their keys. Weights are multiplied by the scales of their values as parts of the tile's
    largest, so that f16 holds them, and the result by that one."""
    keys, by_key = load_narrow(k_cache, k_scales, b, j, g, BS, D)
    values, by_value = load_narrow(v_cache, v_scales, b, j, g, BS, D)
    score = scores(queries, keys, False)
    if LAST:
        written = j * BS + ct.arange(BS, dtype=ct.int32) <= position
        by_key = ct.where(written[None, :], by_key, 0.0)
        by_value = ct.where(written[None, :], by_value, 0.0)
        score = ct.where(written[None, :], score * by_key, -float("inf")) * factor
        values = ct.where(written[:, None], values, 0.0)
    else:
        score = score * by_key * factor
    risen = ct.maximum(maximum, ct.max(score, axis=1, keepdims=True))
    rescale = ct.exp2(maximum - risen, flush_to_zero=True)
    p = ct.exp2(score - risen, flush_to_zero=True)
    top = scale_within(largest_in(by_value), 1.0)[:, None]
    weighted = (p * (by_value * (1.0 / top))).astype(ct.float16)
    made = ct.mma(weighted, values, ct.zeros((queries.shape[0], D), ct.float32))
    return risen, total * rescale + ct.sum(p, axis=1, keepdims=True), acc * rescale + made * top


@ct.kernel
def grouped_decode_attention_f8(
    q, k_cache, v_cache, k_scales, v_scales, positions, partial, stats, scale, D: ConstInt, BQ: ConstInt, BS: ConstInt,
    SPAN: ConstInt,
):  # fmt: skip
    """One block makes the queries of one head of keys over SPAN positions of the cache: what `merge_attention` puts
    together. Queries are rounded to f16 as parts of their row's largest, which is a factor of their scores: f16 has
    fewer sizes than bf16."""
    parts = ct.cdiv(q.shape[2], BQ)
    g, part, b, z = ct.bid(0) // parts, ct.bid(0) % parts, ct.bid(1), ct.bid(2)
    position = load_position(positions, b)
    at, zero = (1, 1, BQ, D), ct.PaddingMode.ZERO
    wide = ct.load(q, index=(b, g, part, 0), shape=at, padding_mode=zero).reshape((BQ, D)).astype(ct.float32)
    unit = scale_within(largest_in(wide), LARGEST)[:, None]
    queries, factor = (wide * (1.0 / unit)).astype(ct.float16), unit * (scale * LOG2_E)
    maximum, total, acc = nothing_yet(BQ, D, LEAST)
    first = z * SPAN
    for j in range(first // BS, ct.minimum(first + SPAN, position) // BS):
        maximum, total, acc = narrow_step(
            queries, factor, k_cache, v_cache, k_scales, v_scales, b, g, j, BS, D, maximum, total, acc, position, False
        )  # fmt: skip
    if first <= position and position < first + SPAN:
        maximum, total, acc = narrow_step(
            queries, factor, k_cache, v_cache, k_scales, v_scales, b, g, position // BS, BS, D, maximum, total, acc,
            position, True,
        )  # fmt: skip
    store_group_span(partial, stats, b, g, part, z, acc, maximum, total, BQ, D)


def load_narrow_directly(cache, scales, b, j, g, BS, D):
    """The same in f32, each thread what it multiplies, and the scales as a column."""
    zero = ct.PaddingMode.ZERO
    tile = ct.load(cache, index=(b, j, g, 0), shape=(1, BS, 1, D), padding_mode=zero, allow_tma=False)
    scale = ct.load(scales, index=(b, g, j), shape=(1, 1, BS), padding_mode=zero, allow_tma=False)
    return tile.astype(ct.float32).reshape((BS, D)), scale.reshape((BS, 1))


def element_step(query, k_cache, v_cache, k_scales, v_scales, b, g, j, BS, D, maximum, sums, acc, position, LAST):
    """One tile of positions: the scores of the query, and the weighted values, which stay one row for each position"""
    keys, by_key = load_narrow_directly(k_cache, k_scales, b, j, g, BS, D)
    score = ct.sum(keys * query, axis=1, keepdims=True) * by_key
    values, by_value = load_narrow_directly(v_cache, v_scales, b, j, g, BS, D)
    if LAST:
        written = (j * BS + ct.arange(BS, dtype=ct.int32) <= position)[:, None]
        score = ct.where(written, score, -float("inf"))
        by_value = ct.where(written, by_value, 0.0)
        values = ct.where(written, values, 0.0)
    risen = ct.maximum(maximum, ct.max(score, axis=0, keepdims=True))
    rescale = ct.exp2(maximum - risen, flush_to_zero=True)
    p = ct.exp2(score - risen, flush_to_zero=True)
    return risen, sums * rescale + p, (p * by_value) * values + acc * rescale


@ct.kernel
def grouped_decode_attention_f8_by_element(
    q, k_cache, v_cache, k_scales, v_scales, positions, partial, stats, scale, D: ConstInt, BQ: ConstInt, BS: ConstInt,
    SPAN: ConstInt,
):  # fmt: skip
    """The same of one query a block, element by element. The rows of positions are added up at the end, once."""
    g, h, b, z = ct.bid(0) // q.shape[2], ct.bid(0) % q.shape[2], ct.bid(1), ct.bid(2)
    position = load_position(positions, b)
    wide = ct.load(q, index=(b, g, h, 0), shape=(1, 1, BQ, D)).reshape((BQ, D)).astype(ct.float32)
    query = ct.broadcast_to(wide * (scale * LOG2_E), (BS, D))
    maximum = ct.full((1, 1), LEAST, ct.float32)
    sums, acc = ct.zeros((BS, 1), ct.float32), ct.zeros((BS, D), ct.float32)
    first = z * SPAN
    for j in range(first // BS, ct.minimum(first + SPAN, position) // BS):
        maximum, sums, acc = element_step(
            query, k_cache, v_cache, k_scales, v_scales, b, g, j, BS, D, maximum, sums, acc, position, False
        )  # fmt: skip
    if first <= position and position < first + SPAN:
        maximum, sums, acc = element_step(
            query, k_cache, v_cache, k_scales, v_scales, b, g, position // BS, BS, D, maximum, sums, acc, position, True
        )  # fmt: skip
    total, one = ct.sum(sums, axis=0, keepdims=True), (1, 1, 1, 1, 1)
    ct.store(partial, index=(b, g, h, z, 0), tile=ct.sum(acc, axis=0).reshape((1, 1, 1, 1, D)), allow_tma=False)
    ct.store(stats, index=(b, g, h, z, 0), tile=maximum.reshape(one), allow_tma=False)
    ct.store(stats, index=(b, g, h, z, 1), tile=total.reshape(one), allow_tma=False)


def widen(cache, scales, out, b, j, g, BS, D):
    value, scale = load_narrow(cache, scales, b, j, g, BS, D)
    widened = value.astype(ct.float32) * ct.permute(scale, (1, 0))
    ct.store(out, index=(b, j, g, 0), tile=widened.astype(out.dtype).reshape((1, BS, 1, D)))


@ct.kernel
def kv_from_f8(k_cache, v_cache, k_scales, v_scales, k, v, D: ConstInt, BS: ConstInt):
    """Keys and values in the dtype of k again: BS positions of one head a block"""
    j, g, b = ct.bid(0), ct.bid(1), ct.bid(2)
    widen(k_cache, k_scales, k, b, j, g, BS, D)
    widen(v_cache, v_scales, v, b, j, g, BS, D)
