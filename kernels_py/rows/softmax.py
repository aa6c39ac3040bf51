"""out = softmax(x) over rows of any width"""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]
LOG2_E = 1.4426950408889634
RESIDENT, CONTIGUOUS = 7, 13  # tiles of a row that softmax_resident and softmax_contiguous keep in registers
VECTOR = 8  # elements of 16 bits that are read and written together
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
def softmax_rows(x, out, R: ConstInt, BN: ConstInt):
    """One block makes R rows of at most BN columns, which stay in registers: x is read once."""
    m = ct.bid(0)
    value = ct.load(x, index=(m, 0), shape=(R, BN), padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False)
    value = value.astype(ct.float32)
    largest = ct.max(value, axis=1, keepdims=True)
    p = ct.exp2((value - largest) * LOG2_E, flush_to_zero=True)
    result = p * (1.0 / ct.sum(p, axis=1, keepdims=True))
    ct.store(out, index=(m, 0), tile=result.astype(out.dtype), allow_tma=False)


@ct.kernel
def softmax_resident(x, out, BN: ConstInt):
    """One block makes one row of at most RESIDENT * BN columns, which stays in registers in its storage type: x is read
    once, the exponentials are taken twice."""
    m = ct.bid(0)
    tiles = ()
    for j in ct.static_iter(range(RESIDENT)):
        tile = ct.load(x, index=(m, j), shape=(1, BN), padding_mode=ct.PaddingMode.NEG_INF, allow_tma=False)
        tiles = (*tiles, tile)
    maxima = tiles[0]
    for j in ct.static_iter(range(1, RESIDENT)):
        maxima = ct.maximum(maxima, tiles[j])
    largest = ct.max(maxima.astype(ct.float32), axis=1, keepdims=True)
    sums = ct.zeros((1, BN), ct.float32)
    for j in ct.static_iter(range(RESIDENT)):
        sums = sums + ct.exp2((tiles[j].astype(ct.float32) - largest) * LOG2_E, flush_to_zero=True)
    inverse = 1.0 / ct.sum(sums, axis=1, keepdims=True)
    for j in ct.static_iter(range(RESIDENT)):
        share = ct.exp2((tiles[j].astype(ct.float32) - largest) * LOG2_E, flush_to_zero=True) * inverse
        ct.store(out, index=(m, j), tile=share.astype(out.dtype), allow_tma=False)


def below(value, largest):
    """How far below the largest value, in powers of two."""
    return (value.astype(ct.float32) - largest) * LOG2_E


def inner(first, j, BN, last):
    """Where the elements of a row's j-th tile are, and which of them are before its last vector."""
    index = first + VECTOR + j * BN + ct.arange(BN, dtype=ct.int32)
    return index, index < last


@ct.kernel
def softmax_contiguous(x, out, BN: ConstInt):
    """softmax_resident of arrays without gaps, whose rows begin at any element and have at most CONTIGUOUS * BN:
    read and written in vectors, except for the vectors that hold a row's first element and its end. A tile in its
    storage type takes half the registers of its values in f32. The compiler would keep the latter if the tile were the
    same both times: adding 0 makes it another. So two blocks share a multiprocessor."""
    m = ct.bid(0)
    rows, columns = x.shape[0], x.shape[1]
    values = ct.Array.from_foreign(x.foreign_pointer, (rows * columns,), (1,))
    results = ct.Array.from_foreign(out.foreign_pointer, (rows * columns,), (1,))
    start, end = m * columns, (m + 1) * columns
    first, last = start // VECTOR * VECTOR, end // VECTOR * VECTOR
    few, least = ct.arange(VECTOR, dtype=ct.int32), -float("inf")
    begins_mask, ends_mask = first + few >= start, last + few < end

    begins = ct.gather(values, first + few, mask=begins_mask, padding_value=least, check_bounds=False)
    ends = ct.gather(values, last + few, mask=ends_mask, padding_value=least, check_bounds=False)
    tiles = ()
    for j in ct.static_iter(range(CONTIGUOUS)):
        index, mask = inner(first, j, BN, last)
        tiles = (*tiles, ct.gather(values, index, mask=mask, padding_value=least, check_bounds=False))
    maxima = tiles[0]
    for j in ct.static_iter(range(1, CONTIGUOUS)):
        maxima = ct.maximum(maxima, tiles[j])
    of_both = ct.maximum(begins, ends)
    largest = ct.maximum(ct.max(maxima.astype(ct.float32)), ct.max(of_both.astype(ct.float32)))

    sums = ct.zeros((BN,), ct.float32)
    for j in ct.static_iter(range(CONTIGUOUS)):
        sums = sums + ct.exp2(below(tiles[j], largest), flush_to_zero=True)
    begins, ends = below(begins, largest), below(ends, largest)
    of_both = ct.exp2(begins, flush_to_zero=True) + ct.exp2(ends, flush_to_zero=True)
    scale = ct.log2(ct.sum(sums) + ct.sum(of_both))

    for j in ct.static_iter(range(CONTIGUOUS)):
        index, mask = inner(first, j, BN, last)
        share = ct.exp2(below(tiles[j] + 0, largest) - scale, flush_to_zero=True)
        ct.scatter(results, index, share.astype(out.dtype), mask=mask, check_bounds=False)
    begins, ends = ct.exp2(begins - scale, flush_to_zero=True), ct.exp2(ends - scale, flush_to_zero=True)
    ct.scatter(results, first + few, begins.astype(out.dtype), mask=begins_mask, check_bounds=False)
    ct.scatter(results, last + few, ends.astype(out.dtype), mask=ends_mask, check_bounds=False)
