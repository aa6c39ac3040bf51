"""linear_residual that also gives each row's sums of squares: of what a norm behind it needs, all that a product that
walks rows in tiles of columns can see. There is one sum for each part of the columns.
"""

from __future__ import annotations

import cuda.tile as ct

from .layernorm import add_both
from .linear import biased, place
from .pair import biased as biased_pair
from .pair import columns, lines, products, store

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]
ZERO = ct.PaddingMode.ZERO


def row_squares(value):
    """The sum of squares of each row of an f32 tile. The plain sum beside it costs nothing and decides how the compiler
    arranges the products before it: without it they wait for one another."""
    return ct.reduce((value, value * value), 1, add_both, (0.0, 0.0))[1]


def summed(x, weight, bias, residual, m, n, BM, BN, BK, TF32):
    """The f32 tile (m, n) of residual + x @ weight + bias."""
    result = biased(x, weight, bias, m, n, BM, BN, BK, TF32)
    return result + ct.load(residual, index=(m, n), shape=(BM, BN), padding_mode=ZERO).astype(ct.float32)


def unit(rows, columns, first, dtype):
    """(rows, columns) of zeros, with ones where the column is the row + first."""
    row, column = ct.arange(rows, dtype=ct.int32)[:, None], ct.arange(columns, dtype=ct.int32)[None, :]
    return (row + first == column).astype(dtype)


@ct.kernel
def linear_residual_squares(
    x, weight, bias, residual, out, squares, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool
):
    """One block makes BM rows of one part's columns, tile by tile."""
    z, m = ct.bid(0), ct.bid(1)
    n_tiles = ct.cdiv(weight.shape[1], BN)
    steps = ct.cdiv(n_tiles, squares.shape[0])
    total = ct.zeros((BM,), ct.float32)
    for n in range(z * steps, ct.minimum((z + 1) * steps, n_tiles)):
        result = summed(x, weight, bias, residual, m, n, BM, BN, BK, TF32)
        ct.store(out, index=(m, n), tile=result.astype(out.dtype))
        total += row_squares(result)
    ct.store(squares, index=(z, m), tile=total.reshape((1, BM)))


@ct.kernel
def linear_residual_squares_tile(
    x,
    weight,
    bias,
    residual,
    out,
    squares,
    BM: ConstInt,
    BN: ConstInt,
    BK: ConstInt,
    GROUP: ConstInt,
    TF32: ConstBool,
):
    """A part is one tile wide. The residual may be the output itself: each block reads just what it writes."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        result = summed(x, weight, bias, residual, m, n, BM, BN, BK, TF32)
        ct.store(out, index=(m, n), tile=result.astype(out.dtype))
        ct.store(squares, index=(n, m), tile=row_squares(result).reshape((1, BM)))


def finish(out, squares, m, n, acc, rest, BM, BN, BR):
    """Stores both parts of tile (m, n), and their rows' squares. The left part is summed by halves:
    by whole rows the compiler has the products before wait for one another."""
    store(out, m, n, acc, rest, BM, BN, BR)
    halves = ct.sum((acc * acc).reshape((BM, 2, BN // 2)), axis=2)
    total = ct.sum(halves, axis=1) + ct.sum(rest * rest, axis=1)
    ct.store(squares, index=(n, m), tile=total.reshape((1, BM)), allow_tma=False)


@ct.kernel
def linear_residual_squares_pair(
    x,
    weight,
    bias,
    residual,
    out,
    squares,
    BM: ConstInt,
    BN: ConstInt,
    BR: ConstInt,
    BK: ConstInt,
    GROUP: ConstInt,
    TF32: ConstBool,
):
    """The same with tiles of BN + BR columns, see pair.py."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN + BR)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        left, right = columns(n, BN, BR)
        acc, rest = biased_pair(x, weight, bias, m, n, BM, BN, BR, BK, TF32)
        before = residual.tiled_view((BM, BN), padding_mode=ZERO, traversal_steps=(BM, BR)).load((m, left))
        rest_before = ct.load(residual, index=(m, right), shape=(BM, BR), padding_mode=ZERO)
        acc, rest = acc + before.astype(ct.float32), rest + rest_before.astype(ct.float32)
        finish(out, squares, m, n, acc, rest, BM, BN, BR)


@ct.kernel
def linear_residual_squares_ones(
    x,
    weight,
    bias,
    residual,
    out,
    squares,
    BM: ConstInt,
    BN: ConstInt,
    BR: ConstInt,
    BK: ConstInt,
    GROUP: ConstInt,
    TF32: ConstBool,
):
    """The same, the residual added on the tensor cores, as a product with ones, which is exact: a tile that they read
    lies in shared memory without bank conflicts, one that the threads read does not. What is not finite spreads in its
    row."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN + BR)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        left, right = columns(n, BN, BR)
        line, rest_line = lines(bias, n, BN, BR)
        acc, rest = products(x, weight, m, n, BM, BN, BR, BK, TF32)
        for part in ct.static_iter(range(2)):
            before = ct.load(residual, index=(m, left + part), shape=(BM, BR), padding_mode=ZERO)
            acc = ct.mma(before, unit(BR, BN, part * BR, before.dtype), acc)
        before = ct.load(residual, index=(m, right), shape=(BM, BR), padding_mode=ZERO)
        rest = ct.mma(before, unit(BR, BR, 0, before.dtype), rest)
        acc, rest = acc + line, rest + rest_line
        finish(out, squares, m, n, acc, rest, BM, BN, BR)
