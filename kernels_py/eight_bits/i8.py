"""Products of 8-bit integers, whose sums are exact, in 32 bits, and the rounding to them."""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import Int, add_residual, gelu_of_value, load, store_directly
from ..rows.layernorm import block
from .scaled import (
    persistent_scaled,
    round_norm,
    round_norm_in_two,
    round_rows,
    round_rows_in_two,
    round_whole_rows,
)

LARGEST = 127.0
LARGE = 12582912.0  # 1.5 * 2^23: beyond it an f32 has no fraction


def nearest(value):
    """The nearest integers, ties to even. NaN becomes the bound, as an integer has none."""
    within = ct.maximum(ct.minimum(value, LARGEST), -LARGEST)
    return ((within + LARGE) - LARGE).astype(ct.int8)


@ct.kernel
def quantize_rows_i8(x, out, scales, R: Int, BC: Int):
    """Rows of any width"""

    def store_tile(m, n, value):
        store_directly(out, (m, n), nearest(value))

    round_rows(x, scales, R, BC, LARGEST, store_tile)


@ct.kernel
def quantize_rows_i8_resident(x, out, scales, R: Int, BC: Int):
    """The same of R rows of at most BC columns, which stay in registers: x is read once."""

    def store_tile(m, n, value):
        store_directly(out, (m, n), nearest(value))

    m = ct.bid(0)
    round_whole_rows(block(x, m, R, BC), scales, m, LARGEST, store_tile)


@ct.kernel
def quantize_rows_i8_two_tiles(x, out, scales, R: Int, BC: Int, BR: Int):
    """The same of R rows of BC + BR columns"""

    def store_tile(m, n, value):
        store_directly(out, (m, n), nearest(value))

    round_rows_in_two(x, scales, R, BC, BR, LARGEST, store_tile)


@ct.kernel
def layernorm_i8(x, weight, bias, out, scales, eps, R: Int, BC: Int):
    """layernorm of R rows of at most BC columns, and the rounding of its result"""

    def store_tile(m, n, value):
        store_directly(out, (m, n), nearest(value))

    round_norm(x, weight, bias, scales, eps, R, BC, LARGEST, store_tile)


@ct.kernel
def layernorm_i8_two_tiles(x, weight, bias, out, scales, eps, R: Int, BC: Int, BR: Int):
    """The same of R rows of BC + BR columns"""

    def store_tile(m, n, value):
        store_directly(out, (m, n), nearest(value))

    round_norm_in_two(x, weight, bias, scales, eps, R, BC, BR, LARGEST, store_tile)


def persistent_i8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue):
    """The hole: `epilogue(value, m, n)` gets the scaled product with its bias in f32."""

    def product(m, n, steps):
        acc = ct.zeros((BM, BN), ct.int32)
        for k in range(steps):
            a, b = load(x, (m, k), (BM, BK)), load(weight, (n, k), (BN, BK))
            acc = ct.mma(a, ct.permute(b, (1, 0)), acc)
        return acc.astype(ct.float32)

    persistent_scaled(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, product, epilogue)


@ct.kernel
def linear_i8(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    """out = (x @ weight.T) * scales + bias"""

    def epilogue(value, m, n):
        return value

    persistent_i8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue)


@ct.kernel
def linear_gelu_i8(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    """out = gelu(linear_i8)"""

    def epilogue(value, m, n):
        return gelu_of_value(value, out.dtype)

    persistent_i8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue)


@ct.kernel
def linear_residual_i8(x, x_scales, weight, weight_scales, bias, residual, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    """out = residual + linear_i8. The residual may be the output itself: each block reads just what it writes."""

    def epilogue(value, m, n):
        return add_residual(value, load(residual, (m, n), (BM, BN)))

    persistent_i8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue)
