"""Products of 8-bit integers, whose sums are exact, in 32 bits."""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import Int, load
from .scaled import activated, added, persistent_scaled, plain


def persistent_i8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue):
    """The hole: `epilogue(value, m, n, dtype)` gets the scaled product with its bias in f32."""

    def product(m, n, steps):
        acc = ct.zeros((BM, BN), ct.int32)
        for k in range(steps):
            a, b = load(x, (m, k), (BM, BK)), load(weight, (n, k), (BN, BK))
            acc = ct.mma(a, ct.permute(b, (1, 0)), acc)
        return acc.astype(ct.float32)

    persistent_scaled(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, product, epilogue)


@ct.kernel
def linear_i8(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    persistent_i8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, plain)


@ct.kernel
def linear_gelu_i8(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    persistent_i8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, activated)


@ct.kernel
def linear_residual_i8(x, x_scales, weight, weight_scales, bias, residual, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    added(persistent_i8, x, x_scales, weight, weight_scales, bias, residual, out, BM, BN, BK, GROUP)
