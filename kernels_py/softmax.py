"""out = softmax(x) over rows of any width"""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]
LOG2_E = 1.4426950408889634


@ct.kernel
def softmax(x, out, BN: ConstInt):
    """One block makes one row in tiles of BN columns, in three passes: the largest value, the sum of the exponentials
    of the differences from it, the result. Columns past the width are -inf, whose exponential is 0."""
    m = ct.bid(0)
    steps = ct.cdiv(x.shape[1], BN)

    maxima = ct.full((1, BN), -float("inf"), ct.float32)
    for j in range(steps):
        value = ct.load(x, index=(m, j), shape=(1, BN), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        maxima = ct.maximum(maxima, value)
    largest = ct.max(maxima, axis=1, keepdims=True)

    sums = ct.zeros((1, BN), ct.float32)
    for j in range(steps):
        value = ct.load(x, index=(m, j), shape=(1, BN), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        sums += ct.exp2((value - largest) * LOG2_E)
    inverse = 1.0 / ct.sum(sums, axis=1, keepdims=True)

    for j in range(steps):
        value = ct.load(x, index=(m, j), shape=(1, BN), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        share = ct.exp2((value - largest) * LOG2_E) * inverse
        ct.store(out, index=(m, j), tile=share.astype(out.dtype))


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
