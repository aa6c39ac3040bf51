"""A cache of keys and values in 8-bit floats (e4m3), with a scale for each head of each position: appending to it, and
attention over it. A head is rounded as quantize_rows rounds a row. Scales lie by heads, (B, G, P): those of consecutive
positions side by side."""

from __future__ import annotations

import cuda.tile as ct

from .attention import LEAST, LOG2_E, load_position, scores
from .f8 import LARGEST
from .rope_append import as_they_are, normed_heads, rope_and_append
from .scaled import scale_within

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

    def keys(first, second):
        return normed_heads(first, second, k_weight, eps, D, E)

    def queries(first, second):
        return normed_heads(first, second, q_weight, eps, D, E)

    def append(first, second, value, own, at, g):
        first, second = as_they_are(first.astype(k.dtype), second.astype(k.dtype))
        append_rounded_halves(first, second, k_cache, k_scales, own, at, g)
        append_rounded(value.reshape((1, D)).astype(ct.float32), v_cache, v_scales, own, at, g)

    rope_and_append(q, k, v, positions, cos, sin, turned, D, E, BQ, append, keys, queries)


def load_narrow(cache, scales, b, j, g, BS, D, dtype):
    """Tile j of the keys or values of one head as they are stored, (BS, D), and their scales, (1, BS)."""
    zero = ct.PaddingMode.ZERO
    tile = ct.load(cache, index=(b, j, g, 0), shape=(1, BS, 1, D), padding_mode=zero)
    scale = ct.load(scales, index=(b, g, j), shape=(1, 1, BS), padding_mode=zero, allow_tma=False)
    return tile.reshape((BS, D)).astype(dtype), scale.reshape((1, BS))


@ct.kernel
def grouped_decode_attention_f8(
    q, k_cache, v_cache, k_scales, v_scales, positions, partial, stats, scale, D: ConstInt, BQ: ConstInt, BS: ConstInt,
    SPAN: ConstInt,
):  # fmt: skip
    """One block makes the queries of one head of keys over SPAN positions of the cache: what `merge_attention` puts
    together. Scores are multiplied by the scales of their keys, weights by those of their values. Every tile is masked:
    what stands behind the token may be anything, NaN too."""
    parts = ct.cdiv(q.shape[2], BQ)
    g, part, b, z = ct.bid(0) // parts, ct.bid(0) % parts, ct.bid(1), ct.bid(2)
    position = load_position(positions, b)
    at, zero = (1, 1, BQ, D), ct.PaddingMode.ZERO
    queries = ct.load(q, index=(b, g, part, 0), shape=at, padding_mode=zero).reshape((BQ, D))
    maximum = ct.full((BQ, 1), LEAST, ct.float32)
    total = ct.zeros((BQ, 1), ct.float32)
    acc = ct.zeros((BQ, D), ct.float32)
    first = z * SPAN
    for j in range(first // BS, ct.cdiv(ct.minimum(first + SPAN, position + 1), BS)):
        written = j * BS + ct.arange(BS, dtype=ct.int32) <= position
        keys, by_key = load_narrow(k_cache, k_scales, b, j, g, BS, D, q.dtype)
        scaled = scores(queries, keys, False) * ct.where(written[None, :], by_key, 0.0)
        score = ct.where(written[None, :], scaled, -float("inf")) * (scale * LOG2_E)
        risen = ct.maximum(maximum, ct.max(score, axis=1, keepdims=True))
        rescale = ct.exp2(maximum - risen, flush_to_zero=True)
        p = ct.exp2(score - risen, flush_to_zero=True)
        values, by_value = load_narrow(v_cache, v_scales, b, j, g, BS, D, q.dtype)
        weighted = (p * ct.where(written[None, :], by_value, 0.0)).astype(q.dtype)
        acc = ct.mma(weighted, ct.where(written[:, None], values, 0.0), acc * rescale)
        maximum, total = risen, total * rescale + ct.sum(p, axis=1, keepdims=True)
    column = (1, 1, BQ, 1, 1)
    ct.store(partial, index=(b, g, part, z, 0), tile=acc.reshape((1, 1, BQ, 1, D)), allow_tma=False)
    ct.store(stats, index=(b, g, part, z, 0), tile=maximum.reshape(column), allow_tma=False)
    ct.store(stats, index=(b, g, part, z, 1), tile=total.reshape(column), allow_tma=False)


def widen(cache, scales, out, b, j, g, BS, D):
    value, scale = load_narrow(cache, scales, b, j, g, BS, D, ct.float32)
    widened = value * ct.permute(scale, (1, 0))
    ct.store(out, index=(b, j, g, 0), tile=widened.astype(out.dtype).reshape((1, BS, 1, D)))


@ct.kernel
def kv_from_f8(k_cache, v_cache, k_scales, v_scales, k, v, D: ConstInt, BS: ConstInt):
    """Keys and values in the dtype of k again: BS positions of one head a block"""
    j, g, b = ct.bid(0), ct.bid(1), ct.bid(2)
    widen(k_cache, k_scales, k, b, j, g, BS, D)
    widen(v_cache, v_scales, v, b, j, g, BS, D)
