"""out[m] = index of the largest x[m, :], the first of equals"""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]


@ct.kernel
def argmax(x, out, BV: ConstInt):
    """One block makes one row: the best of each tile in turn, a later one only if it is larger."""
    m = ct.bid(0)
    best = ct.full((1, 1), -float("inf"), ct.float32)
    place = ct.zeros((1, 1), ct.int32)
    for j in range(ct.cdiv(x.shape[1], BV)):
        value = ct.load(x, index=(m, j), shape=(1, BV), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        largest = ct.max(value, axis=1, keepdims=True)
        # The first column of the tile that holds its largest value.
        column = ct.arange(BV, dtype=ct.int32)[None, :]
        first = ct.min(ct.where(value == largest, column, BV), axis=1, keepdims=True)
        larger = largest > best
        place = ct.where(larger, j * BV + first, place)
        best = ct.where(larger, largest, best)
    ct.store(out, index=(m,), tile=place.reshape((1,)))
