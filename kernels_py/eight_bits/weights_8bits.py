"""Products over weights in 8 bits, whose rows, an output each, have a scale. All else has 16 bits.

A tile of the weight is made wider, which x's dtype can without rounding, and is the left operand of the product: tensor
cores take that one from registers, where it was made. So the product is turned: BN rows of the weight by BM rows of x.
"""

from __future__ import annotations

import cuda.tile as ct

from ..products.matmul import gated
from ..products.products import Int, add_residual, load, load_directly, store_directly
from .scaled import activated, plain

STEPS = 3  # of K, in kernels for one row


def rows_product(x, weight, m, n, BM, BN, BK):
    """The f32 tile (m, n) of x @ weight.T, with tensor cores."""
    acc = ct.zeros((BN, BM), ct.float32)
    for k in range(ct.cdiv(x.shape[1], BK)):
        rows, wide = load(x, (m, k), (BM, BK)), load(weight, (n, k), (BN, BK)).astype(x.dtype)
        acc = ct.mma(wide, ct.permute(rows, (1, 0)), acc)
    return ct.permute(acc, (1, 0))


def read_ahead(weight, n, dtype, BN, BK):
    """STEPS tiles of the weight's rows n"""
    tiles = ()
    for k in ct.static_iter(range(STEPS)):
        tiles = (*tiles, load_directly(weight, (n, k), (BN, BK)).astype(dtype))
    return tiles


def one_row_product(x, tiles, m, BN, BK):
    """The products of one row of x with the rows of the weight that were read ahead, element by element: (1, BN)"""
    total = ct.zeros((BN, BK), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        total = load_directly(x, (m, k), (1, BK)).astype(ct.float32) * tiles[k].astype(ct.float32) + total
    return ct.sum(total, axis=1)[None, :]


def of_columns(vector, n, BN):
    """The scales or biases of a tile's columns: (1, BN)"""
    return load_directly(vector, (n,), (BN,)).astype(ct.float32)[None, :]


def over_8bits(x, weight, weight_scales, bias, out, BM, BN, BK, epilogue):
    """Any number of rows. The hole: `epilogue(value, m, n, dtype)` gets the scaled product with its bias in f32."""
    n, m = ct.bid(0), ct.bid(1)
    scales, biases = of_columns(weight_scales, n, BN), of_columns(bias, n, BN)
    ct.grid_dependency_control_wait()
    value = rows_product(x, weight, m, n, BM, BN, BK) * scales + biases
    store_directly(out, (m, n), epilogue(value, m, n, out.dtype))


def one_row_over_8bits(x, weight, weight_scales, bias, out, BM, BN, BK, epilogue):
    """One row of at most STEPS BK columns: all of the weight is read ahead."""
    n, m = ct.bid(0), ct.bid(1)
    scales, biases = of_columns(weight_scales, n, BN), of_columns(bias, n, BN)
    tiles = read_ahead(weight, n, x.dtype, BN, BK)
    ct.grid_dependency_control_wait()
    value = one_row_product(x, tiles, m, BN, BK) * scales + biases
    store_directly(out, (m, n), epilogue(value, m, n, out.dtype))


def added(schedule, x, weight, weight_scales, bias, residual, out, BM, BN, BK):
    """The product is added to the residual, which may be the output itself: each block reads just what it writes."""

    def epilogue(value, m, n, dtype):
        return add_residual(value, load_directly(residual, (m, n), (BM, BN)))

    schedule(x, weight, weight_scales, bias, out, BM, BN, BK, epilogue)


def pair_over_8bits(x, gate, gate_scales, up, up_scales, out, BM, BN, BK):
    """out = silu(x @ gate.T) * (x @ up.T), each with its scales"""
    n, m = ct.bid(0), ct.bid(1)
    of_gate, of_up = of_columns(gate_scales, n, BN), of_columns(up_scales, n, BN)
    ct.grid_dependency_control_wait()
    gate_acc, up_acc = ct.zeros((BN, BM), ct.float32), ct.zeros((BN, BM), ct.float32)
    for k in range(ct.cdiv(x.shape[1], BK)):
        turned = ct.permute(load(x, (m, k), (BM, BK)), (1, 0))
        gate_acc = ct.mma(load(gate, (n, k), (BN, BK)).astype(x.dtype), turned, gate_acc)
        up_acc = ct.mma(load(up, (n, k), (BN, BK)).astype(x.dtype), turned, up_acc)
    gate_product, up_product = ct.permute(gate_acc, (1, 0)), ct.permute(up_acc, (1, 0))
    store_directly(out, (m, n), gated(gate_product * of_gate, up_product * of_up, out.dtype))


def one_row_pair_over_8bits(x, gate, gate_scales, up, up_scales, out, BM, BN, BK):
    """The same of one row"""
    n, m = ct.bid(0), ct.bid(1)
    of_gate, of_up = of_columns(gate_scales, n, BN), of_columns(up_scales, n, BN)
    gates, ups = read_ahead(gate, n, x.dtype, BN, BK), read_ahead(up, n, x.dtype, BN, BK)
    ct.grid_dependency_control_wait()
    gate_product, up_product = one_row_product(x, gates, m, BN, BK), one_row_product(x, ups, m, BN, BK)
    store_directly(out, (m, n), gated(gate_product * of_gate, up_product * of_up, out.dtype))


@ct.kernel
def linear_weight_f8(x, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int):
    over_8bits(x, weight, weight_scales, bias, out, BM, BN, BK, plain)


@ct.kernel
def linear_gelu_weight_f8(x, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int):
    over_8bits(x, weight, weight_scales, bias, out, BM, BN, BK, activated)


@ct.kernel
def linear_residual_weight_f8(x, weight, weight_scales, bias, residual, out, BM: Int, BN: Int, BK: Int):
    added(over_8bits, x, weight, weight_scales, bias, residual, out, BM, BN, BK)


@ct.kernel
def swiglu_weight_f8(x, gate, gate_scales, up, up_scales, out, BM: Int, BN: Int, BK: Int):
    pair_over_8bits(x, gate, gate_scales, up, up_scales, out, BM, BN, BK)


@ct.kernel
def linear_weight_f8_one_row(x, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int):
    one_row_over_8bits(x, weight, weight_scales, bias, out, BM, BN, BK, plain)


@ct.kernel
def linear_gelu_weight_f8_one_row(x, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int):
    one_row_over_8bits(x, weight, weight_scales, bias, out, BM, BN, BK, activated)


@ct.kernel
def linear_residual_weight_f8_one_row(x, weight, weight_scales, bias, residual, out, BM: Int, BN: Int, BK: Int):
    added(one_row_over_8bits, x, weight, weight_scales, bias, residual, out, BM, BN, BK)


@ct.kernel
def swiglu_weight_f8_one_row(x, gate, gate_scales, up, up_scales, out, BM: Int, BN: Int, BK: Int):
    one_row_pair_over_8bits(x, gate, gate_scales, up, up_scales, out, BM, BN, BK)


# A kernel has no dtype of its own: integers take those of floats.
linear_weight_i8 = linear_weight_f8
linear_gelu_weight_i8 = linear_gelu_weight_f8
linear_residual_weight_i8 = linear_residual_weight_f8
swiglu_weight_i8 = swiglu_weight_f8
linear_weight_i8_one_row = linear_weight_f8_one_row
linear_gelu_weight_i8_one_row = linear_gelu_weight_f8_one_row
linear_residual_weight_i8_one_row = linear_residual_weight_f8_one_row
swiglu_weight_i8_one_row = swiglu_weight_f8_one_row
