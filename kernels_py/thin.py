"""Matrix products of at most 16 rows and STEPS * BK columns, transposed: the tensor cores of Hopper make 64 rows at a
time, and the weight's columns are that many where the rows of x are not. Like those of `few`, a block reads all that it
needs of the weight before it waits for the launches before it."""

from __future__ import annotations

import cuda.tile as ct

from .elementwise import gelu_of_half
from .few import STEPS, inverse, panel, store_squares

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]
ZERO = ct.PaddingMode.ZERO


def product(x, tiles, m, first, BM, BN, BK, TF32):
    """The f32 tile of the rows m of x with a panel of the weight."""
    acc = ct.zeros((BN, BM), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        a, b = ct.load(x, index=(m, first + k), shape=(BM, BK), padding_mode=ZERO), tiles[k]
        if TF32:
            a, b = a.astype(ct.tfloat32), b.astype(ct.tfloat32)
        acc = ct.mma(ct.permute(b, (1, 0)), ct.permute(a, (1, 0)), acc)
    return ct.permute(acc, (1, 0))


def ahead(weight, bias, n, BN, BK):
    """What is read before the wait: a panel of the weight, and the bias as a line (1, BN)."""
    tiles = panel(weight, 0, n, BN, BK)
    line = ct.load(bias, index=(n,), shape=(BN,), padding_mode=ZERO, allow_tma=False).astype(ct.float32)
    return tiles, line[None, :]


def summed(x, weight, bias, residual, m, n, BM, BN, BK, TF32):
    """The f32 tile (m, n) of residual + x @ weight + bias. The residual may be the output itself: each block reads just
    what it writes."""
    tiles, line = ahead(weight, bias, n, BN, BK)
    ct.grid_dependency_control_wait()
    before = ct.load(residual, index=(m, n), shape=(BM, BN), padding_mode=ZERO, allow_tma=False).astype(ct.float32)
    return product(x, tiles, m, 0, BM, BN, BK, TF32) + line + before


@ct.kernel
def linear_thin(x, weight, bias, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    n, m = ct.bid(0), ct.bid(1)
    tiles, line = ahead(weight, bias, n, BN, BK)
    ct.grid_dependency_control_wait()
    result = product(x, tiles, m, 0, BM, BN, BK, TF32) + line
    ct.store(out, index=(m, n), tile=result.astype(out.dtype), allow_tma=False)


@ct.kernel
def linear_residual_squares_thin(
    x, weight, bias, residual, out, squares, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool
):
    n, m = ct.bid(0), ct.bid(1)
    result = summed(x, weight, bias, residual, m, n, BM, BN, BK, TF32)
    ct.store(out, index=(m, n), tile=result.astype(out.dtype), allow_tma=False)
    store_squares(squares, m, n, result, BM)


@ct.kernel
def rms_linear_gelu_thin(x, squares, weight, bias, out, eps, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    n, m = ct.bid(0), ct.bid(1)
    tiles, line = ahead(weight, bias, n, BN, BK)
    ct.grid_dependency_control_wait()
    scale = inverse(squares, m, BM, eps, x.shape[1])
    half = product(x, tiles, m, 0, BM, BN, BK, TF32) * (0.5 * scale) + 0.5 * line
    ct.store(out, index=(m, n), tile=gelu_of_half(half, out.dtype).astype(out.dtype), allow_tma=False)


@ct.kernel
def linear_parts_thin(x, weight, partial, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    """One block makes a tile of one part's product."""
    n, m, z = ct.bid(0), ct.bid(1), ct.bid(2)
    tiles = panel(weight, z * STEPS, n, BN, BK)
    ct.grid_dependency_control_wait()
    result = product(x, tiles, m, z * STEPS, BM, BN, BK, TF32)
    ct.store(partial, index=(z, m, n), tile=result.reshape((1, BM, BN)), allow_tma=False)
