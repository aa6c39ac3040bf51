"""Products of few rows over weights in 8 bits (see weights_8bits.py). A block reads all that it needs of the weight,
STEPS tiles of BK columns, and makes them wider before it waits for the launches before this one: that takes longer than
the product."""

from __future__ import annotations

import cuda.tile as ct

from ..products.other_products import steps_of_part
from ..products.products import Int, load, store_directly
from .scaled import activated, plain
from .weights_8bits import STEPS, added, of_columns


def weight_ahead(weight, n, first, dtype, BN, BK):
    """STEPS tiles of the weight's rows n, from step `first` of K on"""
    tiles = ()
    for k in ct.static_iter(range(STEPS)):
        tiles = (*tiles, load(weight, (n, first + k), (BN, BK)).astype(dtype))
    return tiles


def rows_ahead(x, m, first, BM, BK):
    """The same of rows m of x"""
    tiles = ()
    for k in ct.static_iter(range(STEPS)):
        tiles = (*tiles, load(x, (m, first + k), (BM, BK)))
    return tiles


def turned_step(rows, tile, acc):
    return ct.mma(tile, ct.permute(rows, (1, 0)), acc)


def turned_product(rows, tiles, BM, BN):
    """The f32 tile of rows of x with rows of the weight, of both of which there are STEPS tiles"""
    acc = ct.zeros((BN, BM), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        acc = turned_step(rows[k], tiles[k], acc)
    return ct.permute(acc, (1, 0))


def ahead_over_8bits(x, weight, weight_scales, bias, out, BM, BN, BK, epilogue):
    """Few rows of at most STEPS BK columns. The hole: `epilogue(value, m, n, dtype)` gets the scaled product with its
    bias in f32."""
    n, m = ct.bid(0), ct.bid(1)
    tiles = weight_ahead(weight, n, 0, x.dtype, BN, BK)
    scales, biases = of_columns(weight_scales, n, BN), of_columns(bias, n, BN)
    ct.grid_dependency_control_wait()
    value = turned_product(rows_ahead(x, m, 0, BM, BK), tiles, BM, BN) * scales + biases
    store_directly(out, (m, n), epilogue(value, m, n, out.dtype))


def split_k_over_8bits(x, weight, weight_scales, partial, BM, BN, BK):
    """Split-K: a block makes one tile of one part, as linear_split_k does."""
    n, m, z = ct.bid(0), ct.bid(1), ct.bid(2)
    scales = of_columns(weight_scales, n, BN)
    ct.grid_dependency_control_wait()
    width = x.shape[1]
    steps = steps_of_part(width, BK)
    acc = ct.zeros((BN, BM), ct.float32)
    for k in range(z * steps, ct.minimum((z + 1) * steps, ct.cdiv(width, BK))):
        acc = turned_step(load(x, (m, k), (BM, BK)), load(weight, (n, k), (BN, BK)).astype(x.dtype), acc)
    store_directly(partial, (z, m, n), (ct.permute(acc, (1, 0)) * scales).reshape((1, BM, BN)))


def split_k_ahead_over_8bits(x, weight, weight_scales, partial, BM, BN, BK):
    """Split-K of few rows: a part is STEPS BK columns."""
    n, m, z = ct.bid(0), ct.bid(1), ct.bid(2)
    tiles = weight_ahead(weight, n, z * STEPS, x.dtype, BN, BK)
    scales = of_columns(weight_scales, n, BN)
    ct.grid_dependency_control_wait()
    product = turned_product(rows_ahead(x, m, z * STEPS, BM, BK), tiles, BM, BN)
    store_directly(partial, (z, m, n), (product * scales).reshape((1, BM, BN)))


@ct.kernel
def linear_weight_f8_ahead(x, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int):
    ahead_over_8bits(x, weight, weight_scales, bias, out, BM, BN, BK, plain)


@ct.kernel
def linear_gelu_weight_f8_ahead(x, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int):
    ahead_over_8bits(x, weight, weight_scales, bias, out, BM, BN, BK, activated)


@ct.kernel
def linear_residual_weight_f8_ahead(x, weight, weight_scales, bias, residual, out, BM: Int, BN: Int, BK: Int):
    added(ahead_over_8bits, x, weight, weight_scales, bias, residual, out, BM, BN, BK)


@ct.kernel
def linear_split_k_weight_f8(x, weight, weight_scales, partial, BM: Int, BN: Int, BK: Int):
    split_k_over_8bits(x, weight, weight_scales, partial, BM, BN, BK)


@ct.kernel
def linear_split_k_weight_f8_ahead(x, weight, weight_scales, partial, BM: Int, BN: Int, BK: Int):
    split_k_ahead_over_8bits(x, weight, weight_scales, partial, BM, BN, BK)


# A kernel has no dtype of its own: integers take those of floats.
linear_weight_i8_ahead = linear_weight_f8_ahead
linear_gelu_weight_i8_ahead = linear_gelu_weight_f8_ahead
linear_residual_weight_i8_ahead = linear_residual_weight_f8_ahead
linear_split_k_weight_i8 = linear_split_k_weight_f8
linear_split_k_weight_i8_ahead = linear_split_k_weight_f8_ahead
