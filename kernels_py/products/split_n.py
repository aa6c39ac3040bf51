"""Split-N products: persistent, with two accumulators, of BN and of BR columns. A tile's sizes are powers of two; tiles
of 192, 288 or 384 columns come out even where those of 128 and 256 leave multiprocessors idle in the last round, and
the wider a tile, the less is read from shared memory per product. Columns are counted in steps of BR. The grid has one
row."""

from __future__ import annotations

import cuda.tile as ct

from .products import (
    ZERO,
    Bool,
    Int,
    add_residual,
    bias_rows,
    gelu,
    gelu_of_half,
    halved,
    inverse_rms,
    load,
    nothing,
    operand,
    row_squares_alone,
    scale_rows,
    store,
    store_directly,
    sum_of_parts,
    tile_place,
)


def unknown_zero(BM, BN):
    """Zeros that the compiler does not know. It takes the first step out of a loop that starts with known zeros and
    then, with two accumulators, has each product wait for the one before it."""
    return ct.full((BM, BN), ct.bid(1).astype(ct.float32), ct.float32)


def split_columns(n, BN, BR):
    """Where the two parts of the n-th tile begin, in steps of BR columns."""
    left = n * (BN // BR + 1)
    return left, left + BN // BR


def split_step(x, w_left, weight, m, k, left, right, acc, rest, BM, BR, BK, TF32):
    """One step of K for both accumulators."""
    a, b, c = load(x, (m, k), (BM, BK)), w_left.load((k, left)), load(weight, (k, right), (BK, BR))
    a, b, c = operand(a, TF32), operand(b, TF32), operand(c, TF32)
    return ct.mma(a, b, acc), ct.mma(a, c, rest)


def split_product(x, weight, m, left, right, BM, BN, BR, BK, TF32):
    """The f32 tiles of both parts of x @ weight."""
    w_left = weight.tiled_view((BK, BN), padding_mode=ZERO, traversal_steps=(BK, BR))
    acc, rest = unknown_zero(BM, BN), unknown_zero(BM, BR)
    for k in range(ct.cdiv(x.shape[1], BK)):
        acc, rest = split_step(x, w_left, weight, m, k, left, right, acc, rest, BM, BR, BK, TF32)
    return acc, rest


def load_split_bias(bias, left, right, BN, BR):
    """The bias of both parts, (1, BN) and (1, BR) in f32."""
    line = bias.tiled_view((BN,), padding_mode=ZERO, traversal_steps=(BR,)).load((left,)).astype(ct.float32)
    rest_line = load(bias, (right,), (BR,)).astype(ct.float32)
    return bias_rows(line), bias_rows(rest_line)


def add_split_residual(value, rest, residual, m, left, right, BM, BN, BR):
    before = residual.tiled_view((BM, BN), padding_mode=ZERO, traversal_steps=(BM, BR)).load((m, left))
    rest_before = load(residual, (m, right), (BM, BR))
    return add_residual(value, before), add_residual(rest, rest_before)


def store_split(out, m, left, right, value, rest, BM, BN, BR):
    out.tiled_view((BM, BN), traversal_steps=(BM, BR)).store((m, left), value.astype(out.dtype))
    store(out, (m, right), rest)


def split_row_squares(value, rest, BM, BN):
    """The sum of squares of each row over both parts. The left part is added up by halves: by whole rows the compiler
    has the products before it wait for one another."""
    halves = ct.sum((value * value).reshape((BM, 2, BN // 2)), axis=2)
    return ct.sum(halves, axis=1) + row_squares_alone(rest)


def store_split_squares(squares, m, n, value, rest, BM, BN):
    store_directly(squares, (n, m), split_row_squares(value, rest, BM, BN).reshape((1, BM)))


def split_n(x, weight, out, BM, BN, BR, BK, GROUP, TF32, prologue, epilogue, after=nothing):
    """The holes: `prologue(left, right)` reads the bias before a tile's K loop; `epilogue(product, rest, bias, m, left,
    right)` gets what it read and gives both results in f32; `after(value, rest, m, n)` comes when they are stored."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN + BR)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        left, right = split_columns(n, BN, BR)
        bias = prologue(left, right)
        product, rest = split_product(x, weight, m, left, right, BM, BN, BR, BK, TF32)
        value, rest = epilogue(product, rest, bias, m, left, right)
        store_split(out, m, left, right, value, rest, BM, BN, BR)
        after(value, rest, m, n)


@ct.kernel
def linear_split_n(x, weight, bias, out, BM: Int, BN: Int, BR: Int, BK: Int, GROUP: Int, TF32: Bool):
    def prologue(left, right):
        return load_split_bias(bias, left, right, BN, BR)

    def epilogue(product, rest, bias, m, left, right):
        return product + bias[0], rest + bias[1]

    split_n(x, weight, out, BM, BN, BR, BK, GROUP, TF32, prologue, epilogue)


@ct.kernel
def linear_gelu_split_n(x, weight, bias, out, BM: Int, BN: Int, BR: Int, BK: Int, GROUP: Int, TF32: Bool):
    def prologue(left, right):
        return load_split_bias(bias, left, right, BN, BR)

    def epilogue(product, rest, bias, m, left, right):
        return gelu(product, halved(bias[0]), out.dtype), gelu(rest, halved(bias[1]), out.dtype)

    split_n(x, weight, out, BM, BN, BR, BK, GROUP, TF32, prologue, epilogue)


@ct.kernel
def linear_residual_split_n(x, weight, bias, residual, out, BM: Int, BN: Int, BR: Int, BK: Int, GROUP: Int, TF32: Bool):
    """The residual may be the output itself: each block reads just what it writes."""

    def prologue(left, right):
        return load_split_bias(bias, left, right, BN, BR)

    def epilogue(product, rest, bias, m, left, right):
        return add_split_residual(product + bias[0], rest + bias[1], residual, m, left, right, BM, BN, BR)

    split_n(x, weight, out, BM, BN, BR, BK, GROUP, TF32, prologue, epilogue)


@ct.kernel
def linear_residual_squares_split_n(
    x, weight, bias, residual, out, squares, BM: Int, BN: Int, BR: Int, BK: Int, GROUP: Int, TF32: Bool
):
    def prologue(left, right):
        return load_split_bias(bias, left, right, BN, BR)

    def epilogue(product, rest, bias, m, left, right):
        return add_split_residual(product + bias[0], rest + bias[1], residual, m, left, right, BM, BN, BR)

    def after(value, rest, m, n):
        store_split_squares(squares, m, n, value, rest, BM, BN)

    split_n(x, weight, out, BM, BN, BR, BK, GROUP, TF32, prologue, epilogue, after)


@ct.kernel
def rms_linear_split_n(x, squares, weight, bias, out, eps, BM: Int, BN: Int, BR: Int, BK: Int, GROUP: Int, TF32: Bool):
    def epilogue(product, rest, _, m, left, right):
        line, rest_line = load_split_bias(bias, left, right, BN, BR)
        scale = inverse_rms(sum_of_parts(squares, m, BM), x.shape[1], eps)
        return scale_rows(product, scale, line), scale_rows(rest, scale, rest_line)

    split_n(x, weight, out, BM, BN, BR, BK, GROUP, TF32, nothing, epilogue)


@ct.kernel
def rms_linear_gelu_split_n(
    x, squares, weight, bias, out, eps, BM: Int, BN: Int, BR: Int, BK: Int, GROUP: Int, TF32: Bool
):
    def epilogue(product, rest, _, m, left, right):
        line, rest_line = load_split_bias(bias, left, right, BN, BR)
        scale = inverse_rms(sum_of_parts(squares, m, BM), x.shape[1], eps)
        half, rest_half = scale_rows(product, scale, line, 0.5), scale_rows(rest, scale, rest_line, 0.5)
        return gelu_of_half(half, out.dtype), gelu_of_half(rest_half, out.dtype)

    split_n(x, weight, out, BM, BN, BR, BK, GROUP, TF32, nothing, epilogue)
