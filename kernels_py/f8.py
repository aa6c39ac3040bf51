"""Products of 8-bit floats (e4m3) with a scale for each row of both operands, and the rounding to them.

Persistent, as persistent.py. Both operands are walked along their rows, as the tensor cores take 8 bits. Within a step
of K the tensor cores add up fast, in fewer bits than f32 has; the steps are added up in f32."""

from __future__ import annotations

import cuda.tile as ct

from .layernorm import block, normed, vector
from .products import Int, add_residual, bias_rows, gelu_of_value, load, load_bias, store, store_directly, tile_place

LARGEST = 448.0  # of f8E4M3FN
LEAST_SCALE = 2.0**-126  # the smallest normal f32: of a row of zeros


def scale_for(largest):
    """The scale that makes this the largest number of e4m3."""
    return ct.maximum(largest / LARGEST, LEAST_SCALE, propagate_nan=True)


def store_rows(value, out, scales, m):
    """Whole rows: their scales, and the rows divided by them. One division a row, as a division of each element is a
    call that takes longer than all the rest."""
    scale = scale_for(ct.max(abs(value), axis=1, keepdims=True, propagate_nan=True))
    ct.store(scales, index=(m,), tile=scale.reshape((scale.shape[0],)))
    store_directly(out, (m, 0), value * (1.0 / scale))


@ct.kernel
def quantize_rows(x, out, scales, R: Int, BC: Int):
    """Rows of any width. One block makes R rows, in steps of BC columns: first their largest magnitude, then the
    quotients."""
    m = ct.bid(0)
    steps = ct.cdiv(x.shape[1], BC)
    largest = ct.zeros((R, 1), ct.float32)
    for n in range(steps):
        value = load(x, (m, n), (R, BC)).astype(ct.float32)
        largest = ct.maximum(largest, ct.max(abs(value), axis=1, keepdims=True, propagate_nan=True), propagate_nan=True)
    scale = scale_for(largest)
    ct.store(scales, index=(m,), tile=scale.reshape((R,)))
    inverse = 1.0 / scale
    for n in range(steps):
        value = load(x, (m, n), (R, BC)).astype(ct.float32)
        store_directly(out, (m, n), value * inverse)


@ct.kernel
def quantize_rows_resident(x, out, scales, R: Int, BC: Int):
    """The same of R rows of at most BC columns, which stay in registers: x is read once."""
    m = ct.bid(0)
    store_rows(block(x, m, R, BC), out, scales, m)


@ct.kernel
def layernorm_f8(x, weight, bias, out, scales, eps, R: Int, BC: Int):
    """layernorm of R rows of at most BC columns, which stay in registers, and the rounding of its result"""
    n = ct.bid(0)
    gain, shift = vector(weight, BC), vector(bias, BC)
    ct.grid_dependency_control_wait()
    result = normed(block(x, n, R, BC), gain, shift, x.shape[1], eps)
    store_rows(result, out, scales, n)


def persistent_f8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue):
    """The hole: `epilogue(value, m, n)` gets the scaled product with its bias in f32."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[0], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        line = load_bias(bias, n, BN)
        columns = load(weight_scales, (n,), (BN,))
        acc = ct.zeros((BM, BN), ct.float32)
        for k in range(ct.cdiv(x.shape[1], BK)):
            a, b = load(x, (m, k), (BM, BK)), load(weight, (n, k), (BN, BK))
            acc += ct.mma(a, ct.permute(b, (1, 0)), ct.zeros((BM, BN), ct.float32), use_fast_acc=True)
        rows = load(x_scales, (m,), (BM,))
        value = acc * rows[:, None] * columns[None, :] + bias_rows(line)
        store(out, (m, n), epilogue(value, m, n))


@ct.kernel
def linear_f8(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    """out = (x @ weight.T) * scales + bias"""

    def epilogue(value, m, n):
        return value

    persistent_f8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue)


@ct.kernel
def linear_gelu_f8(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    """out = gelu(linear_f8)"""

    def epilogue(value, m, n):
        return gelu_of_value(value, out.dtype)

    persistent_f8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue)


@ct.kernel
def linear_gelu_f8_to_f8(
    x, x_scales, weight, weight_scales, bias, factors, out, BM: Int, BN: Int, BK: Int, GROUP: Int
):  # fmt: skip
    """out = gelu(linear_f8) * factors, in 8 bits"""

    def epilogue(value, m, n):
        return gelu_of_value(value, out.dtype) * load(factors, (n,), (BN,))[None, :]

    persistent_f8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue)


@ct.kernel
def linear_residual_f8(x, x_scales, weight, weight_scales, bias, residual, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    """out = residual + linear_f8. The residual may be the output itself: each block reads just what it writes."""

    def epilogue(value, m, n):
        return add_residual(value, load(residual, (m, n), (BM, BN)))

    persistent_f8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue)
