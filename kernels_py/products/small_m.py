"""Products of few rows and at most STEPS * BK columns. Reading the weight is most of the work, so a block reads all
that it needs of it, STEPS tiles of BK rows, before it waits for the launches before this one: they arrive while those
still run (a PDL prologue). Past the end of K x and the weight are zeros. One block makes one tile."""

from __future__ import annotations

import cuda.tile as ct

from .products import (
    Bool,
    Int,
    add_residual,
    bias_rows,
    gelu_of_half,
    inverse_rms,
    load,
    load_bias,
    load_directly,
    nothing,
    operand,
    row_squares_alone,
    scale_rows,
    store,
    store_directly,
)

STEPS = 3


def load_weight(weight, first, n, BN, BK):
    """STEPS tiles of column n of the weight's tiles, from `first` on."""
    tiles = ()
    for k in ct.static_iter(range(STEPS)):
        tiles = (*tiles, load(weight, (first + k, n), (BK, BN)))
    return tiles


def load_weight_directly(weight, first, n, BN, BK):
    """The same without the copy engine: each thread gets what it multiplies."""
    tiles = ()
    for k in ct.static_iter(range(STEPS)):
        tiles = (*tiles, load_directly(weight, (first + k, n), (BK, BN)))
    return tiles


def multiply(x, tiles, m, first, BM, BN, BK, TF32):
    """The f32 tile of the rows m of x with the loaded tiles of the weight."""
    acc = ct.zeros((BM, BN), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        a = operand(load(x, (m, first + k), (BM, BK)), TF32)
        acc = ct.mma(a, operand(tiles[k], TF32), acc)
    return acc


def multiply_swapped(x, tiles, m, first, BM, BN, BK, TF32):
    """Swap-AB: the tensor cores of Hopper make 64 rows at a time. The weight has that many columns where x has fewer
    rows, so the product is made transposed."""
    acc = ct.zeros((BN, BM), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        a = operand(load(x, (m, first + k), (BM, BK)), TF32)
        b = operand(tiles[k], TF32)
        acc = ct.mma(ct.permute(b, (1, 0)), ct.permute(a, (1, 0)), acc)
    return ct.permute(acc, (1, 0))


def multiply_one_row(x, tiles, m, first, BM, BN, BK, TF32):
    """GEMV: one row is multiplied element by element, and added up over K in the end."""
    total = ct.zeros((BK, BN), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        total = gemv_step(load_row(x, m, first + k, BK), tiles[k], total)
    return ct.sum(total, axis=0, keepdims=True)


def load_row(x, m, k, BK):
    """BK columns of one row, as a column in f32."""
    return load_directly(x, (m, k), (1, BK)).astype(ct.float32).reshape((BK, 1))


def gemv_step(a, b, total):
    return a * b.astype(ct.float32) + total


def load_bias_directly(bias, n, BN):
    return load_directly(bias, (n,), (BN,)).astype(ct.float32)


def inverse_rms_at_once(squares, m, BM, width, eps, PARTS):
    """1 / rms of each row, from at most PARTS parts of its squares, read at once: past the last one there are zeros."""
    parts = load_directly(squares, (0, m), (PARTS, BM))
    return inverse_rms(ct.sum(parts, axis=0), width, eps)


def store_squares(squares, m, n, value, BM):
    """The sum of squares of a tile's rows: a part is one tile wide."""
    store_directly(squares, (n, m), row_squares_alone(value).reshape((1, BM)))


def one_tile(x, weight, out, BM, BN, BK, TF32, load_tiles, multiply, store, ahead, behind, epilogue, after):
    """The holes: `ahead(n)` reads the bias before the wait; `behind(m, n)` reads what comes of earlier launches;
    `epilogue(product, bias, read)` gets both and gives the result in f32; `after(value, m, n)` comes when that is
    stored."""
    n, m = ct.bid(0), ct.bid(1)
    tiles = load_tiles(weight, 0, n, BN, BK)
    bias = ahead(n)
    ct.grid_dependency_control_wait()
    read = behind(m, n)
    value = epilogue(multiply(x, tiles, m, 0, BM, BN, BK, TF32), bias, read)
    store(out, (m, n), value)
    after(value, m, n)


def small_m(x, weight, out, BM, BN, BK, TF32, ahead, behind, epilogue, after=nothing):
    one_tile(x, weight, out, BM, BN, BK, TF32, load_weight, multiply, store, ahead, behind, epilogue, after)


def swap_ab(x, weight, out, BM, BN, BK, TF32, ahead, behind, epilogue, after=nothing):
    one_tile(
        x, weight, out, BM, BN, BK, TF32, load_weight, multiply_swapped, store_directly, ahead, behind, epilogue, after
    )  # fmt: skip


def gemv(x, weight, out, BM, BN, BK, TF32, ahead, behind, epilogue, after=nothing):
    one_tile(
        x, weight, out, BM, BN, BK, TF32, load_weight_directly, multiply_one_row, store_directly, ahead, behind,
        epilogue, after,
    )  # fmt: skip


def residual_squares(schedule, x, weight, bias, residual, out, squares, BM, BN, BK, TF32):
    """out = residual + x @ weight + bias, and the squares of its rows, for schedules without the copy engine."""

    def ahead(n):
        return bias_rows(load_bias_directly(bias, n, BN))

    def behind(m, n):
        return load_directly(residual, (m, n), (BM, BN))

    def epilogue(product, bias, residual):
        return add_residual(product + bias, residual)

    def after(value, m, n):
        store_squares(squares, m, n, value, BM)

    schedule(x, weight, out, BM, BN, BK, TF32, ahead, behind, epilogue, after)


@ct.kernel
def linear_small_m(x, weight, bias, out, BM: Int, BN: Int, BK: Int, TF32: Bool):
    def ahead(n):
        return load_bias(bias, n, BN)

    def epilogue(product, bias, _):
        return product + bias_rows(bias)

    small_m(x, weight, out, BM, BN, BK, TF32, ahead, nothing, epilogue)


@ct.kernel
def linear_residual_small_m(x, weight, bias, residual, out, BM: Int, BN: Int, BK: Int, TF32: Bool):
    """The residual may be the output itself: each block reads just what it writes."""

    def ahead(n):
        return load_bias(bias, n, BN)

    def behind(m, n):
        return load(residual, (m, n), (BM, BN))

    def epilogue(product, bias, residual):
        return add_residual(product + bias_rows(bias), residual)

    small_m(x, weight, out, BM, BN, BK, TF32, ahead, behind, epilogue)


@ct.kernel
def linear_residual_squares_small_m(x, weight, bias, residual, out, squares, BM: Int, BN: Int, BK: Int, TF32: Bool):
    def ahead(n):
        return load_bias(bias, n, BN)

    def behind(m, n):
        return load(residual, (m, n), (BM, BN))

    def epilogue(product, bias, residual):
        return add_residual(product + bias_rows(bias), residual)

    def after(value, m, n):
        store_squares(squares, m, n, value, BM)

    small_m(x, weight, out, BM, BN, BK, TF32, ahead, behind, epilogue, after)


@ct.kernel
def rms_linear_gelu_small_m(x, squares, weight, bias, out, eps, BM: Int, BN: Int, BK: Int, PARTS: Int, TF32: Bool):
    def ahead(n):
        return load_bias(bias, n, BN)

    def behind(m, n):
        return inverse_rms_at_once(squares, m, BM, x.shape[1], eps, PARTS)

    def epilogue(product, bias, scale):
        return gelu_of_half(scale_rows(product, scale, bias_rows(bias), 0.5), out.dtype)

    small_m(x, weight, out, BM, BN, BK, TF32, ahead, behind, epilogue)


@ct.kernel
def linear_swap_ab(x, weight, bias, out, BM: Int, BN: Int, BK: Int, TF32: Bool):
    def ahead(n):
        return bias_rows(load_bias_directly(bias, n, BN))

    def epilogue(product, bias, _):
        return product + bias

    swap_ab(x, weight, out, BM, BN, BK, TF32, ahead, nothing, epilogue)


@ct.kernel
def linear_residual_squares_swap_ab(x, weight, bias, residual, out, squares, BM: Int, BN: Int, BK: Int, TF32: Bool):
    residual_squares(swap_ab, x, weight, bias, residual, out, squares, BM, BN, BK, TF32)


@ct.kernel
def rms_linear_gelu_swap_ab(x, squares, weight, bias, out, eps, BM: Int, BN: Int, BK: Int, PARTS: Int, TF32: Bool):
    def ahead(n):
        return bias_rows(load_bias_directly(bias, n, BN))

    def behind(m, n):
        return inverse_rms_at_once(squares, m, BM, x.shape[1], eps, PARTS)

    def epilogue(product, bias, scale):
        return gelu_of_half(scale_rows(product, scale, bias, 0.5), out.dtype)

    swap_ab(x, weight, out, BM, BN, BK, TF32, ahead, behind, epilogue)


@ct.kernel
def rms_linear_small_m(x, squares, weight, bias, out, eps, BM: Int, BN: Int, BK: Int, PARTS: Int, TF32: Bool):
    def ahead(n):
        return load_bias(bias, n, BN)

    def behind(m, n):
        return inverse_rms_at_once(squares, m, BM, x.shape[1], eps, PARTS)

    def epilogue(product, bias, scale):
        return scale_rows(product, scale, bias_rows(bias))

    small_m(x, weight, out, BM, BN, BK, TF32, ahead, behind, epilogue)


@ct.kernel
def linear_residual_squares_gemv(x, weight, bias, residual, out, squares, BM: Int, BN: Int, BK: Int, TF32: Bool):
    residual_squares(gemv, x, weight, bias, residual, out, squares, BM, BN, BK, TF32)


@ct.kernel
def rms_linear_gemv(x, squares, weight, bias, out, eps, BM: Int, BN: Int, BK: Int, PARTS: Int, TF32: Bool):
    def ahead(n):
        return bias_rows(load_bias_directly(bias, n, BN))

    def behind(m, n):
        return inverse_rms_at_once(squares, m, BM, x.shape[1], eps, PARTS)

    def epilogue(product, bias, scale):
        return scale_rows(product, scale, bias)

    gemv(x, weight, out, BM, BN, BK, TF32, ahead, behind, epilogue)
