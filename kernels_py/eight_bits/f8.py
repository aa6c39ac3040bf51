"""Products of 8-bit floats (e4m3). The tensor cores add up fast, in fewer bits than f32 has: over a step of K, over a
run of RUN steps, or over the whole of a K that is not long. Sums of steps or runs are added up in f32. That takes a
second accumulator, so a tile is smaller."""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import Int, gelu_of_value, load
from .scaled import activated, added, persistent_scaled, plain


def f8_run(x, weight, m, n, first, end, BM, BN, BK):
    """The f32 tile (m, n) of x @ weight.T over some steps of K"""
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(first, end):
        a, b = load(x, (m, k), (BM, BK)), load(weight, (n, k), (BN, BK))
        acc = ct.mma(a, ct.permute(b, (1, 0)), acc, use_fast_acc=True)
    return acc


def persistent_f8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue):
    """The hole: `epilogue(value, m, n, dtype)` gets the scaled product with its bias in f32."""

    def product(m, n, steps):
        acc = ct.zeros((BM, BN), ct.float32)
        for k in range(steps):
            a, b = load(x, (m, k), (BM, BK)), load(weight, (n, k), (BN, BK))
            acc += ct.mma(a, ct.permute(b, (1, 0)), ct.zeros((BM, BN), ct.float32), use_fast_acc=True)
        return acc

    persistent_scaled(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, product, epilogue)


def persistent_f8_whole(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue):
    """The same of a K that is not long"""

    def product(m, n, steps):
        return f8_run(x, weight, m, n, 0, steps, BM, BN, BK)

    persistent_scaled(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, product, epilogue)


def persistent_f8_in_runs(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, RUN, epilogue):
    """The same, where the sums of runs are added up"""

    def product(m, n, steps):
        acc = ct.zeros((BM, BN), ct.float32)
        for first in range(0, steps, RUN):
            acc += f8_run(x, weight, m, n, first, ct.minimum(first + RUN, steps), BM, BN, BK)
        return acc

    persistent_scaled(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, product, epilogue)


def activated_to_f8(schedule, x, x_scales, weight, weight_scales, bias, factors, out, *sizes):
    """out = gelu of the product * factors, in 8 bits"""

    def epilogue(value, m, n, dtype):
        return gelu_of_value(value, dtype) * load(factors, (n,), (sizes[1],))[None, :]

    schedule(x, x_scales, weight, weight_scales, bias, out, *sizes, epilogue)


@ct.kernel
def linear_f8(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    persistent_f8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, plain)


@ct.kernel
def linear_f8_whole(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    persistent_f8_whole(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, plain)


@ct.kernel
def linear_gelu_f8(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    persistent_f8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, activated)


@ct.kernel
def linear_gelu_f8_whole(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    persistent_f8_whole(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, activated)


@ct.kernel
def linear_gelu_f8_to_f8(x, x_scales, weight, weight_scales, bias, factors, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    activated_to_f8(persistent_f8, x, x_scales, weight, weight_scales, bias, factors, out, BM, BN, BK, GROUP)


@ct.kernel
def linear_gelu_f8_to_f8_whole(
    x, x_scales, weight, weight_scales, bias, factors, out, BM: Int, BN: Int, BK: Int, GROUP: Int
):
    activated_to_f8(persistent_f8_whole, x, x_scales, weight, weight_scales, bias, factors, out, BM, BN, BK, GROUP)


@ct.kernel
def linear_residual_f8(x, x_scales, weight, weight_scales, bias, residual, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    added(persistent_f8, x, x_scales, weight, weight_scales, bias, residual, out, BM, BN, BK, GROUP)


@ct.kernel
def linear_residual_f8_whole(
    x, x_scales, weight, weight_scales, bias, residual, out, BM: Int, BN: Int, BK: Int, GROUP: Int
):
    added(persistent_f8_whole, x, x_scales, weight, weight_scales, bias, residual, out, BM, BN, BK, GROUP)


@ct.kernel
def linear_residual_f8_in_runs(
    x, x_scales, weight, weight_scales, bias, residual, out, BM: Int, BN: Int, BK: Int, GROUP: Int, RUN: Int
):
    added(persistent_f8_in_runs, x, x_scales, weight, weight_scales, bias, residual, out, BM, BN, BK, GROUP, RUN)
