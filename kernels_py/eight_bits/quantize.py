"""The rounding of rows to 8 bits, each with a scale: to floats (e4m3), or to integers if that is what is stored."""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import Int, load, store_directly
from ..rows.layernorm import block, norm_of_two_tiles, normed, normed_tile, rows_part, vector

LARGEST = 448.0  # of f8E4M3FN
LARGEST_I8 = 127.0
LARGE = 12582912.0  # 1.5 * 2^23: beyond it an f32 has no fraction
LEAST_SCALE = 2.0**-126  # the smallest normal f32: of a row of zeros


def scale_within(largest, most):
    """The scale that makes this the largest number of a range."""
    return ct.maximum(largest / most, LEAST_SCALE, propagate_nan=True)


def most_in(out):
    """The largest number of an output's 8 bits"""
    return LARGEST_I8 if out.dtype == ct.int8 else LARGEST


def largest_of(value):
    """The largest magnitude of each row, (R, 1)."""
    return ct.max(abs(value), axis=1, keepdims=True, propagate_nan=True)


def store_rounded(out, m, n, value):
    """The nearest numbers, ties to even. As an integer NaN becomes the bound."""
    if out.dtype == ct.int8:
        within = ct.maximum(ct.minimum(value, LARGEST_I8), -LARGEST_I8)
        value = ((within + LARGE) - LARGE).astype(ct.int8)
    store_directly(out, (m, n), value)


def round_whole_rows(value, out, scales, m, most):
    """Whole rows: their scales, and the rows divided by them. One division a row, as a division of each element is a
    call that takes longer than all the rest."""
    scale = scale_within(largest_of(value), most)
    ct.store(scales, index=(m,), tile=scale.reshape((scale.shape[0],)))
    store_rounded(out, m, 0, value * (1.0 / scale))


def round_two_tiles(left, right, out, scales, m, place, most):
    """The same of rows in two parts, the right one `place` times its width from their beginning: GPT-2's 768 and 3072
    columns are no powers of two."""
    scale = scale_within(ct.maximum(largest_of(left), largest_of(right), propagate_nan=True), most)
    ct.store(scales, index=(m,), tile=scale.reshape((scale.shape[0],)))
    inverse = 1.0 / scale
    store_rounded(out, m, 0, left * inverse)
    store_rounded(out, m, place, right * inverse)


@ct.kernel
def quantize_rows(x, out, scales, R: Int, BC: Int):
    """Rows of any width. One block makes R rows, in steps of BC columns: first their largest magnitude, then the
    quotients."""
    most, m = most_in(out), ct.bid(0)
    steps = ct.cdiv(x.shape[1], BC)
    largest = ct.zeros((R, 1), ct.float32)
    for n in range(steps):
        value = load(x, (m, n), (R, BC)).astype(ct.float32)
        largest = ct.maximum(largest, largest_of(value), propagate_nan=True)
    scale = scale_within(largest, most)
    ct.store(scales, index=(m,), tile=scale.reshape((R,)))
    inverse = 1.0 / scale
    for n in range(steps):
        value = load(x, (m, n), (R, BC)).astype(ct.float32)
        store_rounded(out, m, n, value * inverse)


@ct.kernel
def quantize_rows_resident(x, out, scales, R: Int, BC: Int):
    """The same of R rows of at most BC columns, which stay in registers: x is read once."""
    m = ct.bid(0)
    round_whole_rows(block(x, m, R, BC), out, scales, m, most_in(out))


@ct.kernel
def quantize_rows_two_tiles(x, out, scales, R: Int, BC: Int, BR: Int):
    """The same of R rows of BC + BR columns"""
    most, m, right = most_in(out), ct.bid(0), BC // BR
    round_two_tiles(rows_part(x, m, 0, R, BC), rows_part(x, m, right, R, BR), out, scales, m, right, most)


@ct.kernel
def layernorm_f8(x, weight, bias, out, scales, eps, R: Int, BC: Int):
    """layernorm of R rows of at most BC columns, which stay in registers, and the rounding of its result"""
    most, n = most_in(out), ct.bid(0)
    gain, shift = vector(weight, BC), vector(bias, BC)
    ct.grid_dependency_control_wait()
    result = normed(block(x, n, R, BC), gain, shift, x.shape[1], eps)
    round_whole_rows(result, out, scales, n, most)


@ct.kernel
def layernorm_f8_two_tiles(x, weight, bias, out, scales, eps, R: Int, BC: Int, BR: Int):
    """The same of R rows of BC + BR columns, with one pass for mean and variance"""
    most, n, place = most_in(out), ct.bid(0), BC // BR
    left, right, mean, inverse = norm_of_two_tiles(x, weight, bias, eps, n, place, R, BC, BR)
    left, right = normed_tile(left, mean, inverse), normed_tile(right, mean, inverse)
    round_two_tiles(left, right, out, scales, n, place, most)


# A kernel has no dtype of its own: integers take those of floats.
quantize_rows_i8 = quantize_rows
quantize_rows_i8_resident = quantize_rows_resident
quantize_rows_i8_two_tiles = quantize_rows_two_tiles
layernorm_i8 = layernorm_f8
layernorm_i8_two_tiles = layernorm_f8_two_tiles
