"""Products of layernorms over weights in 8 bits (see few_rows_8bits.py). Each block norms its rows itself, which takes
less than a launch."""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import Int, load, load_directly, store_directly
from .few_rows_8bits import rows_ahead, turned_product, turned_step, weight_ahead
from .scaled import activated, plain
from .weights_8bits import STEPS, of_columns, read_ahead


def one_row_product(rows, tiles, BN, BK):
    """The same of one row, element by element"""
    total = ct.zeros((BN, BK), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        total = rows[k].astype(ct.float32) * tiles[k].astype(ct.float32) + total
    return ct.sum(total, axis=1)[None, :]


def deviation(rows, mean, k, width, BK):
    """How far rows are from their mean; 0 past the last column, where the padding would deviate too."""
    columns = k * BK + ct.arange(BK, dtype=ct.int32)[None, :]
    return ct.where(columns < width, rows.astype(ct.float32) - mean, 0.0)


def normed(rows, mean, inverse, norm_weight, norm_bias, k, BK):
    """A tile of a norm, as layernorm stores it. Past the last column weight and bias are zeros."""
    gain = load_directly(norm_weight, (k,), (BK,)).astype(ct.float32)[None, :]
    shift = load_directly(norm_bias, (k,), (BK,)).astype(ct.float32)[None, :]
    return ((rows.astype(ct.float32) - mean) * inverse * gain + shift).astype(rows.dtype)


def normed_at_once(rows, norm_weight, norm_bias, width, eps, BM, BK):
    """The norms of whole rows, in STEPS tiles"""
    total, square = ct.zeros((BM, BK), ct.float32), ct.zeros((BM, BK), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        total += rows[k].astype(ct.float32)
    mean = ct.sum(total, axis=1, keepdims=True) / width
    for k in ct.static_iter(range(STEPS)):
        away = deviation(rows[k], mean, k, width, BK)
        square += away * away
    inverse = ct.rsqrt(ct.sum(square, axis=1, keepdims=True) / width + eps)
    tiles = ()
    for k in ct.static_iter(range(STEPS)):
        tiles = (*tiles, normed(rows[k], mean, inverse, norm_weight, norm_bias, k, BK))
    return tiles


def normed_product(x, norm_weight, norm_bias, weight, eps, m, n, BM, BN, BK):
    """The product of a norm, of any width: x is read three times."""
    width = x.shape[1]
    steps = ct.cdiv(width, BK)
    total, square = ct.zeros((BM, BK), ct.float32), ct.zeros((BM, BK), ct.float32)
    for k in range(steps):
        total += load(x, (m, k), (BM, BK)).astype(ct.float32)
    mean = ct.sum(total, axis=1, keepdims=True) / width
    for k in range(steps):
        away = deviation(load(x, (m, k), (BM, BK)), mean, k, width, BK)
        square += away * away
    inverse = ct.rsqrt(ct.sum(square, axis=1, keepdims=True) / width + eps)
    acc = ct.zeros((BN, BM), ct.float32)
    for k in range(steps):
        rows = normed(load(x, (m, k), (BM, BK)), mean, inverse, norm_weight, norm_bias, k, BK)
        acc = turned_step(rows, load(weight, (n, k), (BN, BK)).astype(x.dtype), acc)
    return ct.permute(acc, (1, 0))


# Schedules. The hole: `epilogue(value, m, n, dtype)` gets the scaled product with its bias in f32.


def norm_over_8bits(x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM, BN, BK, epilogue):
    """Norms of any number of rows"""
    n, m = ct.bid(0), ct.bid(1)
    scales, biases = of_columns(weight_scales, n, BN), of_columns(bias, n, BN)
    ct.grid_dependency_control_wait()
    value = normed_product(x, norm_weight, norm_bias, weight, eps, m, n, BM, BN, BK) * scales + biases
    store_directly(out, (m, n), epilogue(value, m, n, out.dtype))


def norm_ahead_over_8bits(x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM, BN, BK, epilogue):
    """Norms of few rows of at most STEPS BK columns"""
    n, m = ct.bid(0), ct.bid(1)
    tiles = weight_ahead(weight, n, 0, x.dtype, BN, BK)
    scales, biases = of_columns(weight_scales, n, BN), of_columns(bias, n, BN)
    ct.grid_dependency_control_wait()
    rows = normed_at_once(rows_ahead(x, m, 0, BM, BK), norm_weight, norm_bias, x.shape[1], eps, BM, BK)
    value = turned_product(rows, tiles, BM, BN) * scales + biases
    store_directly(out, (m, n), epilogue(value, m, n, out.dtype))


def norm_one_row_over_8bits(x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM, BN, BK, epilogue):
    """The norm of one row of at most STEPS BK columns"""
    n, m = ct.bid(0), ct.bid(1)
    tiles = read_ahead(weight, n, x.dtype, BN, BK)
    scales, biases = of_columns(weight_scales, n, BN), of_columns(bias, n, BN)
    ct.grid_dependency_control_wait()
    row = ()
    for k in ct.static_iter(range(STEPS)):
        row = (*row, load_directly(x, (m, k), (BM, BK)))
    rows = normed_at_once(row, norm_weight, norm_bias, x.shape[1], eps, BM, BK)
    value = one_row_product(rows, tiles, BN, BK) * scales + biases
    store_directly(out, (m, n), epilogue(value, m, n, out.dtype))


@ct.kernel
def layernorm_linear_weight_f8(
    x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM: Int, BN: Int, BK: Int
):
    norm_over_8bits(x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM, BN, BK, plain)


@ct.kernel
def layernorm_linear_weight_f8_ahead(
    x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM: Int, BN: Int, BK: Int
):
    norm_ahead_over_8bits(x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM, BN, BK, plain)


@ct.kernel
def layernorm_linear_weight_f8_one_row(
    x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM: Int, BN: Int, BK: Int
):
    norm_one_row_over_8bits(x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM, BN, BK, plain)


@ct.kernel
def layernorm_linear_gelu_weight_f8(
    x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM: Int, BN: Int, BK: Int
):
    norm_over_8bits(x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM, BN, BK, activated)


@ct.kernel
def layernorm_linear_gelu_weight_f8_ahead(
    x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM: Int, BN: Int, BK: Int
):
    norm_ahead_over_8bits(x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM, BN, BK, activated)


@ct.kernel
def layernorm_linear_gelu_weight_f8_one_row(
    x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM: Int, BN: Int, BK: Int
):
    norm_one_row_over_8bits(x, norm_weight, norm_bias, weight, weight_scales, bias, out, eps, BM, BN, BK, activated)


# A kernel has no dtype of its own: integers take those of floats.
layernorm_linear_weight_i8 = layernorm_linear_weight_f8
layernorm_linear_weight_i8_ahead = layernorm_linear_weight_f8_ahead
layernorm_linear_weight_i8_one_row = layernorm_linear_weight_f8_one_row
layernorm_linear_gelu_weight_i8 = layernorm_linear_gelu_weight_f8
layernorm_linear_gelu_weight_i8_ahead = layernorm_linear_gelu_weight_f8_ahead
layernorm_linear_gelu_weight_i8_one_row = layernorm_linear_gelu_weight_f8_one_row
