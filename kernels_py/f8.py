"""Products of 8-bit floats (e4m3), and the rounding to them. Within a step of K the tensor cores add up fast, in fewer
bits than f32 has; the steps are added up in f32."""

from __future__ import annotations

import cuda.tile as ct

from .layernorm import block
from .products import Int, add_residual, gelu_of_value, load, store_directly
from .scaled import persistent_scaled, round_norm, round_rows, round_whole_rows

LARGEST = 448.0  # of f8E4M3FN


@ct.kernel
def quantize_rows(x, out, scales, R: Int, BC: Int):
    """Rows of any width"""

    def store_tile(m, n, value):
        store_directly(out, (m, n), value)

    round_rows(x, scales, R, BC, LARGEST, store_tile)


@ct.kernel
def quantize_rows_resident(x, out, scales, R: Int, BC: Int):
    """The same of R rows of at most BC columns, which stay in registers: x is read once."""

    def store_tile(m, n, value):
        store_directly(out, (m, n), value)

    m = ct.bid(0)
    round_whole_rows(block(x, m, R, BC), scales, m, LARGEST, store_tile)


@ct.kernel
def layernorm_f8(x, weight, bias, out, scales, eps, R: Int, BC: Int):
    """layernorm of R rows of at most BC columns, and the rounding of its result"""

    def store_tile(m, n, value):
        store_directly(out, (m, n), value)

    round_norm(x, weight, bias, scales, eps, R, BC, LARGEST, store_tile)


def persistent_f8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue):
    """The hole: `epilogue(value, m, n)` gets the scaled product with its bias in f32."""

    def product(m, n, steps):
        acc = ct.zeros((BM, BN), ct.float32)
        for k in range(steps):
            a, b = load(x, (m, k), (BM, BK)), load(weight, (n, k), (BN, BK))
            acc += ct.mma(a, ct.permute(b, (1, 0)), ct.zeros((BM, BN), ct.float32), use_fast_acc=True)
        return acc

    persistent_scaled(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, product, epilogue)


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
