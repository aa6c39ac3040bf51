"""Matrix products of a single row, as decoding one sequence makes them: the weights are read once and are all the work,
so they are multiplied element by element, and the layernorm before the product costs no launch of its own."""

from __future__ import annotations

import cuda.tile as ct

from .elementwise import gelu_tile

ConstInt = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO


def statistics(x, m, eps, BC):
    """Mean and 1 / standard deviation of row m, each (1, 1), in two passes of tiles of BC columns."""
    width = x.shape[1]
    sums = ct.zeros((1, BC), ct.float32)
    for j in range(ct.cdiv(width, BC)):
        sums += ct.load(x, index=(m, j), shape=(1, BC), padding_mode=ZERO).astype(ct.float32)
    mean = ct.sum(sums, axis=1, keepdims=True) / width
    squares = ct.zeros((1, BC), ct.float32)
    for j in range(ct.cdiv(width, BC)):
        value = ct.load(x, index=(m, j), shape=(1, BC), padding_mode=ZERO).astype(ct.float32)
        inside = (j * BC + ct.arange(BC, dtype=ct.int32)) < width
        deviation = ct.where(inside[None, :], value - mean, 0.0)
        squares += deviation * deviation
    return mean, ct.rsqrt(ct.sum(squares, axis=1, keepdims=True) / width + eps)


def vector(array, k, BK):
    """Tile k of a vector, as a line (1, BK) in f32; zeros past its end."""
    return ct.load(array, index=(k,), shape=(BK,), padding_mode=ZERO).astype(ct.float32)[None, :]


def normed_product(x, norm_weight, norm_bias, weight, m, n, eps, BN, BK, BC):
    """Columns n of layernorm(x[m]) @ weight, (1, BN). The normed row is rounded as a layernorm of its own rounds it;
    past the row's end its weight and bias are 0, and so is it."""
    mean, inverse = statistics(x, m, eps, BC)
    sums = ct.zeros((BK, BN), ct.float32)
    for k in range(ct.cdiv(x.shape[1], BK)):
        value = ct.load(x, index=(m, k), shape=(1, BK), padding_mode=ZERO).astype(ct.float32)
        normed = (value - mean) * inverse * vector(norm_weight, k, BK) + vector(norm_bias, k, BK)
        w = ct.load(weight, index=(k, n), shape=(BK, BN), padding_mode=ZERO).astype(ct.float32)
        sums += normed.astype(x.dtype).astype(ct.float32).reshape((BK, 1)) * w
    return ct.sum(sums, axis=0, keepdims=True)


@ct.kernel
def norm_linear(x, norm_weight, norm_bias, weight, bias, out, eps, BN: ConstInt, BK: ConstInt, BC: ConstInt):
    n, m = ct.bid(0), ct.bid(1)
    result = normed_product(x, norm_weight, norm_bias, weight, m, n, eps, BN, BK, BC) + vector(bias, n, BN)
    ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def norm_linear_gelu(x, norm_weight, norm_bias, weight, bias, out, eps, BN: ConstInt, BK: ConstInt, BC: ConstInt):
    n, m = ct.bid(0), ct.bid(1)
    result = normed_product(x, norm_weight, norm_bias, weight, m, n, eps, BN, BK, BC) + vector(bias, n, BN)
    ct.store(out, index=(m, n), tile=gelu_tile(result, out.dtype).astype(out.dtype))


@ct.kernel
def linear_residual_row(x, weight, bias, residual, out, BN: ConstInt, BK: ConstInt):
    """The residual may be the output itself: each block reads just what it writes. The first BK rows of the weight are
    read before the wait."""
    n, m = ct.bid(0), ct.bid(1)
    line = ct.load(bias, index=(n,), shape=(BN,), padding_mode=ZERO, allow_tma=False).astype(ct.float32)[None, :]
    w = ct.load(weight, index=(0, n), shape=(BK, BN), padding_mode=ZERO, allow_tma=False)
    ct.grid_dependency_control_wait()
    before = ct.load(residual, index=(m, n), shape=(1, BN), padding_mode=ZERO, allow_tma=False).astype(ct.float32)
    value = ct.load(x, index=(m, 0), shape=(1, BK), padding_mode=ZERO, allow_tma=False).astype(ct.float32)
    sums = value.reshape((BK, 1)) * w.astype(ct.float32)
    for k in range(1, ct.cdiv(x.shape[1], BK)):
        value = ct.load(x, index=(m, k), shape=(1, BK), padding_mode=ZERO).astype(ct.float32)
        w = ct.load(weight, index=(k, n), shape=(BK, BN), padding_mode=ZERO)
        sums += value.reshape((BK, 1)) * w.astype(ct.float32)
    result = ct.sum(sums, axis=0, keepdims=True) + line + before
    ct.store(out, index=(m, n), tile=result.astype(out.dtype), allow_tma=False)
