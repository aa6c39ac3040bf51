"""Persistent products: as many blocks as fit the GPU walk the tiles of the result, so that the epilogue of one tile
overlaps the loads of the next one. With a grid as large as the number of tiles, each block makes one."""

from __future__ import annotations

import cuda.tile as ct

from .products import (
    Bool,
    Int,
    add_residual,
    bias_rows,
    gelu_of_half,
    gelu_of_value,
    inverse_rms,
    load,
    load_bias,
    nothing,
    product,
    row_squares,
    scale_rows,
    store,
    sum_of_parts,
    tile_place,
)


def persistent(x, weight, out, BM, BN, BK, GROUP, TF32, prologue, epilogue, after=nothing):
    """The holes: `prologue(n)` reads the bias before a tile's K loop; `epilogue(product, bias, m, n)` gets what it read
    and gives the result in f32; `after(value, m, n)` comes when that is stored."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        bias = prologue(n)
        made = product(x, weight, m, n, BM, BN, BK, TF32)
        value = epilogue(made, bias, m, n)
        store(out, (m, n), value)
        after(value, m, n)


@ct.kernel
def linear(x, weight, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    """out = x @ weight + bias"""

    def prologue(n):
        return load_bias(bias, n, BN)

    def epilogue(product, bias, m, n):
        return product + bias_rows(bias)

    persistent(x, weight, out, BM, BN, BK, GROUP, TF32, prologue, epilogue)


@ct.kernel
def linear_gelu(x, weight, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    """out = gelu(x @ weight + bias)"""

    def prologue(n):
        return load_bias(bias, n, BN)

    def epilogue(product, bias, m, n):
        return gelu_of_value(product + bias_rows(bias), out.dtype)

    persistent(x, weight, out, BM, BN, BK, GROUP, TF32, prologue, epilogue)


@ct.kernel
def linear_residual(x, weight, bias, residual, out, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    """out = residual + x @ weight + bias. The residual may be the output itself: each block reads just what it
    writes."""

    def prologue(n):
        return load_bias(bias, n, BN)

    def epilogue(product, bias, m, n):
        return add_residual(product + bias_rows(bias), load(residual, (m, n), (BM, BN)))

    persistent(x, weight, out, BM, BN, BK, GROUP, TF32, prologue, epilogue)


@ct.kernel
def linear_residual_squares_persistent(
    x, weight, bias, residual, out, squares, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool
):
    """linear_residual, and the sum of squares of each row's result over the tile's columns, which are one part of
    them."""

    def prologue(n):
        return load_bias(bias, n, BN)

    def epilogue(product, bias, m, n):
        return add_residual(product + bias_rows(bias), load(residual, (m, n), (BM, BN)))

    def after(value, m, n):
        store(squares, (n, m), row_squares(value).reshape((1, BM)))

    persistent(x, weight, out, BM, BN, BK, GROUP, TF32, prologue, epilogue, after)


@ct.kernel
def rms_linear(x, squares, weight, bias, out, eps, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    """out = (x @ weight) / rms + bias, where the squares are those of linear_residual_squares: the norm needs no launch
    of its own."""

    def epilogue(product, _, m, n):
        line = load_bias(bias, n, BN)
        scale = inverse_rms(sum_of_parts(squares, m, BM), x.shape[1], eps)
        return scale_rows(product, scale, bias_rows(line))

    persistent(x, weight, out, BM, BN, BK, GROUP, TF32, nothing, epilogue)


@ct.kernel
def rms_linear_gelu(x, squares, weight, bias, out, eps, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    """out = gelu(rms_linear)"""

    def epilogue(product, _, m, n):
        line = load_bias(bias, n, BN)
        scale = inverse_rms(sum_of_parts(squares, m, BM), x.shape[1], eps)
        return gelu_of_half(scale_rows(product, scale, bias_rows(line), 0.5), out.dtype)

    persistent(x, weight, out, BM, BN, BK, GROUP, TF32, nothing, epilogue)
