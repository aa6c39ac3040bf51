"""Matrix products whose tiles are BN + BR columns wide, with an accumulator for each of the two.

A tile's sizes are powers of two. Tiles of 192, 288 or 384 columns come out even where those of 128 and 256 leave
multiprocessors idle in the last round, and the wider a tile, the less is read from shared memory per product. The
kernels are persistent, as those of linear.py are; their grids have one row.
"""

from __future__ import annotations

import cuda.tile as ct

from .elementwise import gelu_of_half
from .linear import place

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]
ZERO = ct.PaddingMode.ZERO


def columns(n, BN, BR):
    """Where the two parts of the n-th tile begin, in steps of BR columns."""
    left = n * (BN // BR + 1)
    return left, left + BN // BR


def zeros(BM, BN):
    """Zeros that the compiler does not know: it takes the first step out of a loop that starts with known ones, and
    then, with two accumulators, has each product wait for the one before it."""
    return ct.full((BM, BN), ct.bid(1).astype(ct.float32), ct.float32)


def products(x, weight, m, n, BM, BN, BR, BK, TF32):
    """The f32 tiles of both parts of tile (m, n) of x @ weight, walking K in steps of BK."""
    left, right = columns(n, BN, BR)
    weight_left = weight.tiled_view((BK, BN), padding_mode=ZERO, traversal_steps=(BK, BR))
    acc, rest = zeros(BM, BN), zeros(BM, BR)
    for k in range(ct.cdiv(x.shape[1], BK)):
        a = ct.load(x, index=(m, k), shape=(BM, BK), padding_mode=ZERO)
        b = weight_left.load((k, left))
        c = ct.load(weight, index=(k, right), shape=(BK, BR), padding_mode=ZERO)
        if TF32:
            a, b, c = a.astype(ct.tfloat32), b.astype(ct.tfloat32), c.astype(ct.tfloat32)
        acc = ct.mma(a, b, acc)
        rest = ct.mma(a, c, rest)
    return acc, rest


def lines(bias, n, BN, BR):
    """Both parts of the n-th tile's bias, (1, BN) and (1, BR) in f32."""
    left, right = columns(n, BN, BR)
    line = bias.tiled_view((BN,), padding_mode=ZERO, traversal_steps=(BR,)).load((left,)).astype(ct.float32)
    rest_line = ct.load(bias, index=(right,), shape=(BR,), padding_mode=ZERO).astype(ct.float32)
    return line[None, :], rest_line[None, :]


def biased(x, weight, bias, m, n, BM, BN, BR, BK, TF32):
    line, rest_line = lines(bias, n, BN, BR)
    acc, rest = products(x, weight, m, n, BM, BN, BR, BK, TF32)
    return acc + line, rest + rest_line


def store(out, m, n, acc, rest, BM, BN, BR):
    left, right = columns(n, BN, BR)
    out.tiled_view((BM, BN), traversal_steps=(BM, BR)).store((m, left), acc.astype(out.dtype))
    ct.store(out, index=(m, right), tile=rest.astype(out.dtype))


@ct.kernel
def linear_pair(
    x, weight, bias, out, BM: ConstInt, BN: ConstInt, BR: ConstInt, BK: ConstInt, GROUP: ConstInt, TF32: ConstBool
):
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN + BR)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        acc, rest = biased(x, weight, bias, m, n, BM, BN, BR, BK, TF32)
        store(out, m, n, acc, rest, BM, BN, BR)


@ct.kernel
def linear_gelu_pair(
    x, weight, bias, out, BM: ConstInt, BN: ConstInt, BR: ConstInt, BK: ConstInt, GROUP: ConstInt, TF32: ConstBool
):
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN + BR)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        line, rest_line = lines(bias, n, BN, BR)
        acc, rest = products(x, weight, m, n, BM, BN, BR, BK, TF32)
        half, rest_half = 0.5 * acc + 0.5 * line, 0.5 * rest + 0.5 * rest_line
        store(out, m, n, gelu_of_half(half, out.dtype), gelu_of_half(rest_half, out.dtype), BM, BN, BR)


@ct.kernel
def linear_residual_pair(
    x,
    weight,
    bias,
    residual,
    out,
    BM: ConstInt,
    BN: ConstInt,
    BR: ConstInt,
    BK: ConstInt,
    GROUP: ConstInt,
    TF32: ConstBool,
):
    """The residual may be the output itself: each block reads just what it writes."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN + BR)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        left, right = columns(n, BN, BR)
        acc, rest = biased(x, weight, bias, m, n, BM, BN, BR, BK, TF32)
        before = residual.tiled_view((BM, BN), padding_mode=ZERO, traversal_steps=(BM, BR)).load((m, left))
        rest_before = ct.load(residual, index=(m, right), shape=(BM, BR), padding_mode=ZERO)
        store(out, m, n, acc + before.astype(ct.float32), rest + rest_before.astype(ct.float32), BM, BN, BR)


@ct.kernel
def logits_pair(
    x, weight, out, BM: ConstInt, BN: ConstInt, BR: ConstInt, BK: ConstInt, GROUP: ConstInt, TF32: ConstBool
):
    """x @ weight.T: both operands are walked along their rows, the weight's tiles are turned over."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[0], BN + BR)
    weight_left = weight.tiled_view((BN, BK), padding_mode=ZERO, traversal_steps=(BR, BK))
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        left, right = columns(n, BN, BR)
        acc, rest = zeros(BM, BN), zeros(BM, BR)
        for k in range(ct.cdiv(x.shape[1], BK)):
            a = ct.load(x, index=(m, k), shape=(BM, BK), padding_mode=ZERO)
            b = weight_left.load((left, k))
            c = ct.load(weight, index=(right, k), shape=(BR, BK), padding_mode=ZERO)
            if TF32:
                a, b, c = a.astype(ct.tfloat32), b.astype(ct.tfloat32), c.astype(ct.tfloat32)
            acc = ct.mma(a, ct.permute(b, (1, 0)), acc)
            rest = ct.mma(a, ct.permute(c, (1, 0)), rest)
        store(out, m, n, acc, rest, BM, BN, BR)
