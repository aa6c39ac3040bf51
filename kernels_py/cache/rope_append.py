"""Rotary positions (Su et al., https://arxiv.org/abs/2104.09864), and the append to a cache of keys and values. A head
is turned as two halves, not as pairs of neighbours, in the order of Hugging Face's models."""

from __future__ import annotations

import cuda.tile as ct

from ..rows.layernorm import part
from ..rows.rmsnorm import inverse_root
from .pages import own_row, page_of

ConstInt = ct.Constant[int]


def turn(x1, x2, cos, sin):
    """Both halves of some heads, (n, E) each in f32, turned."""
    return x1 * cos - x2 * sin, x1 * sin + x2 * cos


def as_they_are(first, second):
    return first.astype(ct.float32), second.astype(ct.float32)


def rope_and_append(
    q, k, v, positions, cos, sin, turned, D, E, BQ, append, keys=as_they_are, queries=as_they_are, slot=own_row
):
    """One block takes one position of one head of keys and values, and the heads of queries that share it, BQ at a
    time. `turned` may be the queries themselves: a block reads both halves before it writes. The holes make of both
    halves what is turned, in f32; `slot` says where in the cache a position is; `append` stores the halves of the
    turned key, in f32, and the value."""
    t, g, b = ct.bid(0), ct.bid(1), ct.bid(2)
    place = ct.load(positions, index=(b,), shape=(1,)).item() + t
    c, s = ct.load(cos, index=(place, 0), shape=(1, E)), ct.load(sin, index=(place, 0), shape=(1, E))

    half = (1, 1, 1, E)
    k1 = ct.load(k, index=(b, t, g, 0), shape=half).reshape((1, E))
    k2 = ct.load(k, index=(b, t, g, 1), shape=half).reshape((1, E))
    own, at = slot(b, place)
    x1, x2 = keys(k1, k2)
    y1, y2 = turn(x1, x2, c, s)
    append(y1, y2, ct.load(v, index=(b, t, g, 0), shape=(1, 1, 1, D)), own, at, g)

    halves, zero = (1, 1, 1, BQ, E), ct.PaddingMode.ZERO
    for i in range(ct.cdiv(q.shape[3], BQ)):
        q1 = ct.load(q, index=(b, t, g, i, 0), shape=halves, padding_mode=zero).reshape((BQ, E))
        q2 = ct.load(q, index=(b, t, g, i, 1), shape=halves, padding_mode=zero).reshape((BQ, E))
        w1, w2 = queries(q1, q2)
        z1, z2 = turn(w1, w2, c, s)
        ct.store(turned, index=(b, t, g, i, 0), tile=z1.astype(turned.dtype).reshape(halves))
        ct.store(turned, index=(b, t, g, i, 1), tile=z2.astype(turned.dtype).reshape(halves))


def store_turned(first, second, value, k_cache, v_cache, own, at, g, E):
    half = (1, 1, 1, E)
    ct.store(k_cache, index=(own, at, g, 0), tile=first.astype(k_cache.dtype).reshape(half))
    ct.store(k_cache, index=(own, at, g, 1), tile=second.astype(k_cache.dtype).reshape(half))
    ct.store(v_cache, index=(own, at, g, 0), tile=value)


def normed_heads(first, second, weight, eps, D, E):
    """Each head divided by its root mean square, times the weights of its halves."""
    x1, x2 = as_they_are(first, second)
    inverse = inverse_root(ct.sum(x1 * x1 + x2 * x2, axis=1, keepdims=True), D, eps)
    return x1 * inverse * part(weight, 0, E), x2 * inverse * part(weight, 1, E)


def norm_rope_and_append(
    q, k, v, positions, cos, sin, q_weight, k_weight, turned, eps, D, E, BQ, append, slot=own_row
):  # fmt: skip
    """rope_and_append of heads that are normed first, as Qwen3 does."""

    def keys(first, second):
        return normed_heads(first, second, k_weight, eps, D, E)

    def queries(first, second):
        return normed_heads(first, second, q_weight, eps, D, E)

    rope_and_append(q, k, v, positions, cos, sin, turned, D, E, BQ, append, keys, queries, slot)


@ct.kernel
def rope_append(q, k, v, positions, cos, sin, turned, k_cache, v_cache, D: ConstInt, E: ConstInt, BQ: ConstInt):
    def append(first, second, value, own, at, g):
        store_turned(first, second, value, k_cache, v_cache, own, at, g, E)

    rope_and_append(q, k, v, positions, cos, sin, turned, D, E, BQ, append)


@ct.kernel
def paged_rope_append(
    q, k, v, positions, tables, cos, sin, turned, k_cache, v_cache, D: ConstInt, E: ConstInt, BQ: ConstInt
):
    """The same to a cache in pages."""

    def slot(b, place):
        return page_of(tables, b, place, k_cache.shape[1])

    def append(first, second, value, own, at, g):
        store_turned(first, second, value, k_cache, v_cache, own, at, g, E)

    rope_and_append(q, k, v, positions, cos, sin, turned, D, E, BQ, append, slot=slot)


@ct.kernel
def norm_rope_append(
    q, k, v, positions, cos, sin, q_weight, k_weight, turned, k_cache, v_cache, eps, D: ConstInt, E: ConstInt,
    BQ: ConstInt,
):  # fmt: skip
    def append(first, second, value, own, at, g):
        store_turned(first, second, value, k_cache, v_cache, own, at, g, E)

    norm_rope_and_append(q, k, v, positions, cos, sin, q_weight, k_weight, turned, eps, D, E, BQ, append)


@ct.kernel
def paged_norm_rope_append(
    q, k, v, positions, tables, cos, sin, q_weight, k_weight, turned, k_cache, v_cache, eps, D: ConstInt, E: ConstInt,
    BQ: ConstInt,
):  # fmt: skip
    """The same to a cache in pages."""

    def slot(b, place):
        return page_of(tables, b, place, k_cache.shape[1])

    def append(first, second, value, own, at, g):
        store_turned(first, second, value, k_cache, v_cache, own, at, g, E)

    norm_rope_and_append(q, k, v, positions, cos, sin, q_weight, k_weight, turned, eps, D, E, BQ, append, slot)
