"""Matrix products of few rows and at most STEPS * BK columns. Reading the weights is most of the work, so a block reads
all that it needs of them before it waits for the launches before it: they arrive while those still run."""

from __future__ import annotations

import cuda.tile as ct

from .elementwise import gelu_tile

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]
ZERO = ct.PaddingMode.ZERO
STEPS = 3


def panel(weight, first, n, BN, BK):
    """STEPS tiles of column n of the weight's tiles, from `first` on; zeros past the weight's end."""
    tiles = ()
    for k in ct.static_iter(range(STEPS)):
        tiles = (*tiles, ct.load(weight, index=(first + k, n), shape=(BK, BN), padding_mode=ZERO))
    return tiles


def product(x, tiles, m, first, BM, BN, BK, TF32):
    """The f32 tile of the rows m of x with a panel of the weight."""
    acc = ct.zeros((BM, BN), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        a, b = ct.load(x, index=(m, first + k), shape=(BM, BK), padding_mode=ZERO), tiles[k]
        if TF32:
            a, b = a.astype(ct.tfloat32), b.astype(ct.tfloat32)
        acc = ct.mma(a, b, acc)
    return acc


def biased(x, weight, bias, m, n, BM, BN, BK, TF32):
    tiles = panel(weight, 0, n, BN, BK)
    line = ct.load(bias, index=(n,), shape=(BN,), padding_mode=ZERO).astype(ct.float32)
    ct.grid_dependency_control_wait()
    return product(x, tiles, m, 0, BM, BN, BK, TF32) + line[None, :]


@ct.kernel
def linear_few(x, weight, bias, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    n, m = ct.bid(0), ct.bid(1)
    result = biased(x, weight, bias, m, n, BM, BN, BK, TF32)
    ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def linear_gelu_few(x, weight, bias, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    n, m = ct.bid(0), ct.bid(1)
    result = gelu_tile(biased(x, weight, bias, m, n, BM, BN, BK, TF32), out.dtype)
    ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def linear_residual_few(x, weight, bias, residual, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    """The residual may be the output itself: each block reads just what it writes."""
    n, m = ct.bid(0), ct.bid(1)
    tiles = panel(weight, 0, n, BN, BK)
    line = ct.load(bias, index=(n,), shape=(BN,), padding_mode=ZERO).astype(ct.float32)
    ct.grid_dependency_control_wait()
    before = ct.load(residual, index=(m, n), shape=(BM, BN), padding_mode=ZERO).astype(ct.float32)
    result = product(x, tiles, m, 0, BM, BN, BK, TF32) + line[None, :] + before
    ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def linear_parts_few(x, weight, partial, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    """One block makes a tile of one part's product."""
    n, m, z = ct.bid(0), ct.bid(1), ct.bid(2)
    tiles = panel(weight, z * STEPS, n, BN, BK)
    ct.grid_dependency_control_wait()
    result = product(x, tiles, m, z * STEPS, BM, BN, BK, TF32)
    ct.store(partial, index=(z, m, n), tile=result.reshape((1, BM, BN)))
