"""A matrix product of a single row, as decoding one sequence makes it: the weights are read once and are all the work,
so they are multiplied element by element."""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO


@ct.kernel
def linear_residual_row(x, weight, bias, residual, out, BN: ConstInt, BK: ConstInt):
    """The residual may be the output itself: each block reads just what it writes. The first BK rows of the weight are
    read before the wait."""
    n, m = ct.bid(0), ct.bid(1)
    line = ct.load(bias, index=(n,), shape=(BN,), padding_mode=ZERO, allow_tma=False).astype(ct.float32)[None, :]
    w = ct.load(weight, index=(0, n), shape=(BK, BN), padding_mode=ZERO, allow_tma=False)
    ct.grid_dependency_control_wait()
    before = ct.load(residual, index=(m, n), shape=(1, BN), padding_mode=ZERO, allow_tma=False).astype(ct.float32)
    value = ct.load(x, index=(m, 0), shape=(1, BK), padding_mode=ZERO, allow_tma=False).astype(ct.float32)
    sums = value.reshape((BK, 1)) * w.astype(ct.float32)
    for k in range(1, ct.cdiv(x.shape[1], BK)):
        value = ct.load(x, index=(m, k), shape=(1, BK), padding_mode=ZERO).astype(ct.float32)
        w = ct.load(weight, index=(k, n), shape=(BK, BN), padding_mode=ZERO)
        sums += value.reshape((BK, 1)) * w.astype(ct.float32)
    result = ct.sum(sums, axis=0, keepdims=True) + line + before
    ct.store(out, index=(m, n), tile=result.astype(out.dtype), allow_tma=False)
