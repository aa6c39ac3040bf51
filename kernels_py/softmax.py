"""out = softmax(x) over rows of any width"""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]
LOG2_E = 1.4426950408889634
HELD = 7  # tiles of a row that softmax_held keeps in registers
LEAST = -3.4028234663852886e38  # f32's least: not above any value, and the difference of two of them is 0, not NaN


@ct.kernel
def softmax(x, out, BN: ConstInt):
    """One block makes one row in tiles of BN columns, in two passes: the largest value and the sum of the exponentials
    of the differences from it, both per lane and rescaled when a lane's largest rises; then the result. Columns past
    the width are -inf, whose exponential is 0."""
    m = ct.bid(0)
    steps = ct.cdiv(x.shape[1], BN)
    infinity = ct.PaddingMode.NEG_INF

    maxima = ct.full((1, BN), LEAST, ct.float32)
    sums = ct.zeros((1, BN), ct.float32)
    for j in range(steps):
        value = ct.load(x, index=(m, j), shape=(1, BN), padding_mode=infinity, allow_tma=False).astype(ct.float32)
        risen = ct.maximum(maxima, value)
        rescale = ct.exp2((maxima - risen) * LOG2_E, flush_to_zero=True)
        sums = sums * rescale + ct.exp2((value - risen) * LOG2_E, flush_to_zero=True)
        maxima = risen
    largest = ct.max(maxima, axis=1, keepdims=True)
    lanes = sums * ct.exp2((maxima - largest) * LOG2_E, flush_to_zero=True)
    inverse = 1.0 / ct.sum(lanes, axis=1, keepdims=True)

    for j in range(steps):
        value = ct.load(x, index=(m, j), shape=(1, BN), padding_mode=infinity, allow_tma=False).astype(ct.float32)
        share = ct.exp2((value - largest) * LOG2_E, flush_to_zero=True) * inverse
        ct.store(out, index=(m, j), tile=share.astype(out.dtype), allow_tma=False)


@ct.kernel
def softmax_row(x, out, R: ConstInt, BN: ConstInt):
    """One block makes R rows of at most BN columns, which stay in registers: x is read once."""
    m = ct.bid(0)
    value = ct.load(x, index=(m, 0), shape=(R, BN), padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False)
    value = value.astype(ct.float32)
    largest = ct.max(value, axis=1, keepdims=True)
    p = ct.exp2((value - largest) * LOG2_E, flush_to_zero=True)
    result = p * (1.0 / ct.sum(p, axis=1, keepdims=True))
    ct.store(out, index=(m, 0), tile=result.astype(out.dtype), allow_tma=False)


@ct.kernel
def softmax_held(x, out, BN: ConstInt):
    """One block makes one row of at most HELD * BN columns, which stays in registers in its storage type: x is read
    once, the exponentials are taken twice."""
    m = ct.bid(0)
    tiles = ()
    for j in ct.static_iter(range(HELD)):
        tile = ct.load(x, index=(m, j), shape=(1, BN), padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False)
        tiles = (*tiles, tile)
    maxima = tiles[0]
    for j in ct.static_iter(range(1, HELD)):
        maxima = ct.maximum(maxima, tiles[j])
    largest = ct.max(maxima.astype(ct.float32), axis=1, keepdims=True)
    sums = ct.zeros((1, BN), ct.float32)
    for j in ct.static_iter(range(HELD)):
        sums = sums + ct.exp2((tiles[j].astype(ct.float32) - largest) * LOG2_E, flush_to_zero=True)
    inverse = 1.0 / ct.sum(sums, axis=1, keepdims=True)
    for j in ct.static_iter(range(HELD)):
        share = ct.exp2((tiles[j].astype(ct.float32) - largest) * LOG2_E, flush_to_zero=True) * inverse
        ct.store(out, index=(m, j), tile=share.astype(out.dtype), allow_tma=False)
