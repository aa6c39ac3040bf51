"""The likeliest token of each row of logits, in two steps: of each part of a row, and of the parts."""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]


def first_of(largest, value, index):
    """The least of index (1, N) among the elements of value (1, N) that are the largest, (1, 1)."""
    return ct.min(ct.where(value == largest, index, 2147483647), axis=1, keepdims=True)


def comes_first(value, index, best, token):
    """Whether value is larger than best, or as large and its index less than token, all (1, 1)."""
    return (value > best) | ((value == best) & (index < token))


@ct.kernel
def argmax_parts(x, values, indices, BV: ConstInt):
    """One block makes BV columns of one row: their largest value, NaN if one of them is, and its index."""
    z, m = ct.bid(0), ct.bid(1)
    value = ct.load(x, index=(m, z), shape=(1, BV), padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False)
    value = value.astype(ct.float32)
    largest = ct.max(value, axis=1, keepdims=True, propagate_nan=True)
    first = first_of(largest, value, (z * BV + ct.arange(BV, dtype=ct.int32))[None, :])
    ct.store(values, index=(m, z), tile=largest, allow_tma=False)
    ct.store(indices, index=(m, z), tile=first, allow_tma=False)


@ct.kernel
def next_token(values, indices, tokens, positions, BZ: ConstInt):
    """One block makes one row: the best of its parts, BZ at a time, of equals that of the least index."""
    m = ct.bid(0)
    best = ct.full((1, 1), -float("inf"), ct.float32)
    token = ct.zeros((1, 1), ct.int32)
    for j in range(ct.cdiv(values.shape[1], BZ)):
        value = ct.load(values, index=(m, j), shape=(1, BZ), padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False)
        index = ct.load(indices, index=(m, j), shape=(1, BZ), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
        largest = ct.max(value, axis=1, keepdims=True)
        first = first_of(largest, value, index)
        better = comes_first(largest, first, best, token)
        token = ct.where(better, first, token)
        best = ct.where(better, largest, best)
    ct.store(tokens, index=(m,), tile=token.reshape((1,)), allow_tma=False)
    position = ct.load(positions, index=(m,), shape=(1,), allow_tma=False)
    ct.store(positions, index=(m,), tile=position + 1, allow_tma=False)
