"""Matrix products of few rows and at most STEPS * BK columns. Reading the weights is most of the work, so a block reads
all that it needs of them before it waits for the launches before it: they arrive while those still run."""

from __future__ import annotations

import cuda.tile as ct

from .elementwise import gelu_of_half

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]
ZERO = ct.PaddingMode.ZERO
STEPS = 3
PARTS = 16  # of a row's squares, at most


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


def summed(x, weight, bias, residual, m, n, BM, BN, BK, TF32):
    """The f32 tile (m, n) of residual + x @ weight + bias. The residual may be the output itself: each block reads just
    what it writes."""
    tiles = panel(weight, 0, n, BN, BK)
    line = ct.load(bias, index=(n,), shape=(BN,), padding_mode=ZERO).astype(ct.float32)
    ct.grid_dependency_control_wait()
    before = ct.load(residual, index=(m, n), shape=(BM, BN), padding_mode=ZERO).astype(ct.float32)
    return product(x, tiles, m, 0, BM, BN, BK, TF32) + line[None, :] + before


def inverse(squares, m, BM, eps, width):
    """1 / sqrt(mean square + eps) of the BM rows from m BM on, (BM, 1); all parts are read at once."""
    parts = ct.load(squares, index=(0, m), shape=(PARTS, BM), padding_mode=ZERO, allow_tma=False)
    return ct.rsqrt(ct.sum(parts, axis=0) * (1.0 / width) + eps)[:, None]


def store_squares(squares, m, n, result, BM):
    """Of a part that is one tile wide."""
    total = ct.sum(result * result, axis=1)
    ct.store(squares, index=(n, m), tile=total.reshape((1, BM)), allow_tma=False)


@ct.kernel
def linear_few(x, weight, bias, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    n, m = ct.bid(0), ct.bid(1)
    result = biased(x, weight, bias, m, n, BM, BN, BK, TF32)
    ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def linear_residual_few(x, weight, bias, residual, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    n, m = ct.bid(0), ct.bid(1)
    result = summed(x, weight, bias, residual, m, n, BM, BN, BK, TF32)
    ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def linear_residual_squares_few(
    x, weight, bias, residual, out, squares, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool
):
    n, m = ct.bid(0), ct.bid(1)
    result = summed(x, weight, bias, residual, m, n, BM, BN, BK, TF32)
    ct.store(out, index=(m, n), tile=result.astype(out.dtype))
    store_squares(squares, m, n, result, BM)


@ct.kernel
def rms_linear_gelu_few(x, squares, weight, bias, out, eps, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    n, m = ct.bid(0), ct.bid(1)
    tiles = panel(weight, 0, n, BN, BK)
    line = ct.load(bias, index=(n,), shape=(BN,), padding_mode=ZERO).astype(ct.float32)
    ct.grid_dependency_control_wait()
    scale = inverse(squares, m, BM, eps, x.shape[1])
    half = product(x, tiles, m, 0, BM, BN, BK, TF32) * (0.5 * scale) + 0.5 * line[None, :]
    ct.store(out, index=(m, n), tile=gelu_of_half(half, out.dtype).astype(out.dtype))


@ct.kernel
def linear_parts_few(x, weight, partial, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    """One block makes a tile of one part's product."""
    n, m, z = ct.bid(0), ct.bid(1), ct.bid(2)
    tiles = panel(weight, z * STEPS, n, BN, BK)
    ct.grid_dependency_control_wait()
    result = product(x, tiles, m, z * STEPS, BM, BN, BK, TF32)
    ct.store(partial, index=(z, m, n), tile=result.reshape((1, BM, BN)))
