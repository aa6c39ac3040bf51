"""Products of rows divided by their root mean square, which is applied to the result: rms(x) @ weight = (x @ weight) /
rms, so that the norm needs no launch of its own. The squares come from linear_residual_squares, a sum for each part of
x's columns.
"""

from __future__ import annotations

import cuda.tile as ct

from .elementwise import gelu_of_half
from .linear import place, product
from .pair import lines, products, store

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]
ZERO = ct.PaddingMode.ZERO


def inverse(squares, m, BM, eps, width):
    """1 / sqrt(mean square + eps) of the BM rows from m BM on, (BM, 1). Four parts are read at once: past the last one
    there are zeros."""
    total = ct.zeros((BM,), ct.float32)
    for step in range(ct.cdiv(squares.shape[0], 4)):
        for z in ct.static_iter(range(4)):
            total += ct.load(squares, index=(4 * step + z, m), shape=(1, BM), padding_mode=ZERO).reshape((BM,))
    return ct.rsqrt(total * (1.0 / width) + eps)[:, None]


def scaled(x, squares, weight, bias, eps, factor, m, n, BM, BN, BK, TF32):
    """The f32 tile (m, n) of factor * (rms(x) @ weight + bias)."""
    acc = product(x, weight, m, n, BM, BN, BK, TF32)
    line = ct.load(bias, index=(n,), shape=(BN,), padding_mode=ZERO).astype(ct.float32) * factor
    return acc * (inverse(squares, m, BM, eps, x.shape[1]) * factor) + line[None, :]


def scaled_pair(x, squares, weight, bias, eps, factor, m, n, BM, BN, BR, BK, TF32):
    acc, rest = products(x, weight, m, n, BM, BN, BR, BK, TF32)
    line, rest_line = lines(bias, n, BN, BR)
    scale = inverse(squares, m, BM, eps, x.shape[1]) * factor
    return acc * scale + line * factor, rest * scale + rest_line * factor


@ct.kernel
def rms_linear(
    x, squares, weight, bias, out, eps, BM: ConstInt, BN: ConstInt, BK: ConstInt, GROUP: ConstInt, TF32: ConstBool
):
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        result = scaled(x, squares, weight, bias, eps, 1.0, m, n, BM, BN, BK, TF32)
        ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def rms_linear_gelu(
    x, squares, weight, bias, out, eps, BM: ConstInt, BN: ConstInt, BK: ConstInt, GROUP: ConstInt, TF32: ConstBool
):
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        result = gelu_of_half(scaled(x, squares, weight, bias, eps, 0.5, m, n, BM, BN, BK, TF32), out.dtype)
        ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def rms_linear_pair(
    x,
    squares,
    weight,
    bias,
    out,
    eps,
    BM: ConstInt,
    BN: ConstInt,
    BR: ConstInt,
    BK: ConstInt,
    GROUP: ConstInt,
    TF32: ConstBool,
):
    """With tiles of BN + BR columns: see pair.py."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN + BR)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        acc, rest = scaled_pair(x, squares, weight, bias, eps, 1.0, m, n, BM, BN, BR, BK, TF32)
        store(out, m, n, acc, rest, BM, BN, BR)


@ct.kernel
def rms_linear_gelu_pair(
    x,
    squares,
    weight,
    bias,
    out,
    eps,
    BM: ConstInt,
    BN: ConstInt,
    BR: ConstInt,
    BK: ConstInt,
    GROUP: ConstInt,
    TF32: ConstBool,
):
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN + BR)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        acc, rest = scaled_pair(x, squares, weight, bias, eps, 0.5, m, n, BM, BN, BR, BK, TF32)
        store(out, m, n, gelu_of_half(acc, out.dtype), gelu_of_half(rest, out.dtype), BM, BN, BR)
