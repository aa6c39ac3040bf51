"""Products with a schedule of their own."""

from __future__ import annotations

import cuda.tile as ct

from .products import (
    Bool,
    Int,
    add_residual,
    bias_rows,
    load,
    load_bias,
    product,
    row_squares,
    step,
    store,
    store_directly,
)
from .small_m import STEPS, load_weight, multiply, multiply_swapped
from .split_n import (
    load_split_bias,
    split_n,
    store_split_squares,
)


def steps_of_part(width, BK):
    """The steps of K that each part has: parts are whole steps of 64."""
    return ct.cdiv(ct.cdiv(width, 64), ct.num_blocks(2)) * 64 // BK


@ct.kernel
def linear_split_k(x, weight, partial, BM: Int, BN: Int, BK: Int, TF32: Bool):
    """Split-K: partial[z] = x[:, part z] @ weight[part z]. A block makes one tile of one part; parts are whole steps of
    64."""
    n, m, z = ct.bid(0), ct.bid(1), ct.bid(2)
    width = x.shape[1]
    steps = steps_of_part(width, BK)
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(z * steps, ct.minimum((z + 1) * steps, ct.cdiv(width, BK))):
        acc = step(x, weight, m, n, k, acc, BM, BN, BK, TF32)
    store(partial, (z, m, n), acc.reshape((1, BM, BN)))


def split_k_ahead(x, weight, partial, BM, BN, BK, TF32, multiply, store):
    """Split-K of few rows: a part is STEPS * BK columns. See small_m.py."""
    n, m, z = ct.bid(0), ct.bid(1), ct.bid(2)
    tiles = load_weight(weight, z * STEPS, n, BN, BK)
    ct.grid_dependency_control_wait()
    result = multiply(x, tiles, m, z * STEPS, BM, BN, BK, TF32)
    store(partial, (z, m, n), result.reshape((1, BM, BN)))


@ct.kernel
def linear_split_k_small_m(x, weight, partial, BM: Int, BN: Int, BK: Int, TF32: Bool):
    split_k_ahead(x, weight, partial, BM, BN, BK, TF32, multiply, store)


@ct.kernel
def linear_split_k_swap_ab(x, weight, partial, BM: Int, BN: Int, BK: Int, TF32: Bool):
    split_k_ahead(x, weight, partial, BM, BN, BK, TF32, multiply_swapped, store_directly)


@ct.kernel
def linear_residual_squares(x, weight, bias, residual, out, squares, BM: Int, BN: Int, BK: Int, TF32: Bool):
    """linear_residual with the squares of a part that several tiles make: one block walks the tiles of its part."""
    z, m = ct.bid(0), ct.bid(1)
    n_tiles = ct.cdiv(weight.shape[1], BN)
    steps = ct.cdiv(n_tiles, squares.shape[0])
    total = ct.zeros((BM,), ct.float32)
    for n in range(z * steps, ct.minimum((z + 1) * steps, n_tiles)):
        line = load_bias(bias, n, BN)
        biased = product(x, weight, m, n, BM, BN, BK, TF32) + bias_rows(line)
        value = add_residual(biased, load(residual, (m, n), (BM, BN)))
        store(out, (m, n), value)
        total += row_squares(value)
    store(squares, (z, m), total.reshape((1, BM)))


def shifted_identity(rows, columns, offset, dtype):
    """(rows, columns) of zeros, with ones where the column is the row + offset."""
    row, column = ct.arange(rows, dtype=ct.int32)[:, None], ct.arange(columns, dtype=ct.int32)[None, :]
    return (row + offset == column).astype(dtype)


@ct.kernel
def linear_residual_squares_split_n_mma(
    x, weight, bias, residual, out, squares, BM: Int, BN: Int, BR: Int, BK: Int, GROUP: Int, TF32: Bool
):
    """Split-N linear_residual with squares. The residual is added by the tensor cores, as a product with ones, which is
    exact: an addition after the K loop would need its tile in registers beside both accumulators. A value that is not
    finite spreads in its row."""

    def prologue(left, right):
        return load_split_bias(bias, left, right, BN, BR)

    def epilogue(acc, rest, bias, m, left, right):
        for part in ct.static_iter(range(2)):
            before = load(residual, (m, left + part), (BM, BR))
            acc = ct.mma(before, shifted_identity(BR, BN, part * BR, before.dtype), acc)
        before = load(residual, (m, right), (BM, BR))
        rest = ct.mma(before, shifted_identity(BR, BR, 0, before.dtype), rest)
        return acc + bias[0], rest + bias[1]

    def after(value, rest, m, n):
        store_split_squares(squares, m, n, value, rest, BM, BN)

    split_n(x, weight, out, BM, BN, BR, BK, GROUP, TF32, prologue, epilogue, after)
