"""Rotary positions (Su et al., https://arxiv.org/abs/2104.09864), and the append to a cache of keys and values. A head
is turned as two halves, not as pairs of neighbours, in the order of Hugging Face's models."""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]


def turn(first, second, cos, sin):
    """Both halves of some heads, (n, E) each, turned, in f32."""
    x1, x2 = first.astype(ct.float32), second.astype(ct.float32)
    return x1 * cos - x2 * sin, x1 * sin + x2 * cos


@ct.kernel
def rope_append(
    q, k, v, positions, cos, sin, turned, k_cache, v_cache, D: ConstInt, E: ConstInt, BQ: ConstInt
):  # fmt: skip
    """One block takes one position of one head of keys and values, and the heads of queries that share it, BQ at a
    time. `turned` may be the queries themselves: a block reads both halves before it writes."""
    t, g, b = ct.bid(0), ct.bid(1), ct.bid(2)
    place = ct.load(positions, index=(b,), shape=(1,)).item() + t
    c, s = ct.load(cos, index=(place, 0), shape=(1, E)), ct.load(sin, index=(place, 0), shape=(1, E))

    half = (1, 1, 1, E)
    k1 = ct.load(k, index=(b, t, g, 0), shape=half).reshape((1, E))
    k2 = ct.load(k, index=(b, t, g, 1), shape=half).reshape((1, E))
    y1, y2 = turn(k1, k2, c, s)
    ct.store(k_cache, index=(b, place, g, 0), tile=y1.astype(k_cache.dtype).reshape(half))
    ct.store(k_cache, index=(b, place, g, 1), tile=y2.astype(k_cache.dtype).reshape(half))
    ct.store(v_cache, index=(b, place, g, 0), tile=ct.load(v, index=(b, t, g, 0), shape=(1, 1, 1, D)))

    halves, zero = (1, 1, 1, BQ, E), ct.PaddingMode.ZERO
    for i in range(ct.cdiv(q.shape[3], BQ)):
        q1 = ct.load(q, index=(b, t, g, i, 0), shape=halves, padding_mode=zero).reshape((BQ, E))
        q2 = ct.load(q, index=(b, t, g, i, 1), shape=halves, padding_mode=zero).reshape((BQ, E))
        z1, z2 = turn(q1, q2, c, s)
        ct.store(turned, index=(b, t, g, i, 0), tile=z1.astype(turned.dtype).reshape(halves))
        ct.store(turned, index=(b, t, g, i, 1), tile=z2.astype(turned.dtype).reshape(halves))
