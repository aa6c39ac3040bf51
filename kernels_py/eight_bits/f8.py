"""Products of 8-bit floats (e4m3), and the rounding to them. The tensor cores add up fast, in fewer bits than f32 has:
over a step of K, over a run of RUN steps, or over the whole of a K that is not long. Sums of steps or runs are added
up in f32. That takes a second accumulator, so a tile is smaller."""

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
def quantize_rows_two_tiles(x, out, scales, R: Int, BC: Int, BR: Int):
    """The same of R rows of BC + BR columns"""

    def store_tile(m, n, value):
        store_directly(out, (m, n), value)

    round_rows_in_two(x, scales, R, BC, BR, LARGEST, store_tile)


@ct.kernel
def layernorm_f8(x, weight, bias, out, scales, eps, R: Int, BC: Int):
    """layernorm of R rows of at most BC columns, and the rounding of its result"""

    def store_tile(m, n, value):
        store_directly(out, (m, n), value)

    round_norm(x, weight, bias, scales, eps, R, BC, LARGEST, store_tile)


@ct.kernel
def layernorm_f8_two_tiles(x, weight, bias, out, scales, eps, R: Int, BC: Int, BR: Int):
    """The same of R rows of BC + BR columns"""

    def store_tile(m, n, value):
        store_directly(out, (m, n), value)

    round_norm_in_two(x, weight, bias, scales, eps, R, BC, BR, LARGEST, store_tile)


def f8_run(x, weight, m, n, first, end, BM, BN, BK):
    """The f32 tile (m, n) of x @ weight.T over some steps of K"""
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(first, end):
        a, b = load(x, (m, k), (BM, BK)), load(weight, (n, k), (BN, BK))
        acc = ct.mma(a, ct.permute(b, (1, 0)), acc, use_fast_acc=True)
    return acc


def persistent_f8(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, epilogue):
    """The hole: `epilogue(value, m, n)` gets the scaled product with its bias in f32."""

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


def plain(schedule, x, x_scales, weight, weight_scales, bias, out, *sizes):
    """out = (x @ weight.T) * scales + bias"""

    def epilogue(value, m, n):
        return value

    schedule(x, x_scales, weight, weight_scales, bias, out, *sizes, epilogue)


def activated(schedule, x, x_scales, weight, weight_scales, bias, out, *sizes):
    """out = gelu of it"""

    def epilogue(value, m, n):
        return gelu_of_value(value, out.dtype)

    schedule(x, x_scales, weight, weight_scales, bias, out, *sizes, epilogue)


def activated_to_f8(schedule, x, x_scales, weight, weight_scales, bias, factors, out, *sizes):
    """out = gelu of it * factors, in 8 bits"""

    def epilogue(value, m, n):
        return gelu_of_value(value, out.dtype) * load(factors, (n,), (sizes[1],))[None, :]

    schedule(x, x_scales, weight, weight_scales, bias, out, *sizes, epilogue)


def added(schedule, x, x_scales, weight, weight_scales, bias, residual, out, *sizes):
    """out = residual + it. The residual may be the output itself: each block reads just what it writes."""

    def epilogue(value, m, n):
        return add_residual(value, load(residual, (m, n), (sizes[0], sizes[1])))

    schedule(x, x_scales, weight, weight_scales, bias, out, *sizes, epilogue)


@ct.kernel
def linear_f8(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    plain(persistent_f8, x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP)


@ct.kernel
def linear_f8_whole(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    plain(persistent_f8_whole, x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP)


@ct.kernel
def linear_gelu_f8(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    activated(persistent_f8, x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP)


@ct.kernel
def linear_gelu_f8_whole(x, x_scales, weight, weight_scales, bias, out, BM: Int, BN: Int, BK: Int, GROUP: Int):
    activated(persistent_f8_whole, x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP)


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
