"""Matrix products with epilogues: bias, bias + GELU, bias + residual, and the logits of tied embeddings.

Each kernel is persistent: as many blocks as fit the GPU walk the output's tiles, so that one tile's epilogue overlaps
the next one's loads. With a grid as large as the number of tiles, each block makes one.
"""

from __future__ import annotations

import cuda.tile as ct

from .elementwise import gelu_tile

ConstInt = ct.Constant[int]
ConstBool = ct.Constant[bool]


def place(tile, m_tiles, n_tiles, GROUP):
    """Row and column of the tile-th tile: GROUP rows of tiles at a time, column by column, so that tiles made at the
    same time share their inputs in the L2 cache."""
    if GROUP == 1:  # one division instead of three, which every block does before its first load
        return tile // n_tiles, tile % n_tiles
    span = GROUP * n_tiles
    first = tile // span * GROUP
    rows = ct.minimum(m_tiles - first, GROUP)
    return first + tile % span % rows, tile % span // rows


def product(x, weight, m, n, BM, BN, BK, TF32):
    """The f32 tile (m, n) of x @ weight, walking K in steps of BK."""
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.cdiv(x.shape[1], BK)):
        a = ct.load(x, index=(m, k), shape=(BM, BK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(weight, index=(k, n), shape=(BK, BN), padding_mode=ct.PaddingMode.ZERO)
        if TF32:
            a, b = a.astype(ct.tfloat32), b.astype(ct.tfloat32)
        acc = ct.mma(a, b, acc)
    return acc


def biased(x, weight, bias, m, n, BM, BN, BK, TF32):
    line = ct.load(bias, index=(n,), shape=(BN,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    return product(x, weight, m, n, BM, BN, BK, TF32) + line[None, :]


@ct.kernel
def linear(x, weight, bias, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, GROUP: ConstInt, TF32: ConstBool):
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        result = biased(x, weight, bias, m, n, BM, BN, BK, TF32)
        ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def linear_gelu(x, weight, bias, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, GROUP: ConstInt, TF32: ConstBool):
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        result = gelu_tile(biased(x, weight, bias, m, n, BM, BN, BK, TF32), out.dtype)
        ct.store(out, index=(m, n), tile=result.astype(out.dtype))


@ct.kernel
def linear_residual(
    x, weight, bias, residual, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, GROUP: ConstInt, TF32: ConstBool
):
    """The residual may be the output itself: each block reads just what it writes."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        result = biased(x, weight, bias, m, n, BM, BN, BK, TF32)
        before = ct.load(residual, index=(m, n), shape=(BM, BN), padding_mode=ct.PaddingMode.ZERO)
        ct.store(out, index=(m, n), tile=(result + before.astype(ct.float32)).astype(out.dtype))


@ct.kernel
def logits(x, weight, out, BM: ConstInt, BN: ConstInt, BK: ConstInt, GROUP: ConstInt, TF32: ConstBool):
    """x @ weight.T: both operands are walked along their rows, the weight's tile is turned over."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[0], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = place(tile, m_tiles, n_tiles, GROUP)
        acc = ct.zeros((BM, BN), ct.float32)
        for k in range(ct.cdiv(x.shape[1], BK)):
            a = ct.load(x, index=(m, k), shape=(BM, BK), padding_mode=ct.PaddingMode.ZERO)
            b = ct.load(weight, index=(n, k), shape=(BN, BK), padding_mode=ct.PaddingMode.ZERO)
            if TF32:
                a, b = a.astype(ct.tfloat32), b.astype(ct.tfloat32)
            acc = ct.mma(a, ct.permute(b, (1, 0)), acc)
        ct.store(out, index=(m, n), tile=acc.astype(out.dtype))


@ct.kernel
def linear_parts(x, weight, partial, BM: ConstInt, BN: ConstInt, BK: ConstInt, TF32: ConstBool):
    """One block makes a tile of one part's product: of few rows and a long K, more blocks share the walk."""
    n, m, z = ct.bid(0), ct.bid(1), ct.bid(2)
    width = x.shape[1]
    steps = ct.cdiv(ct.cdiv(width, 64), ct.num_blocks(2)) * 64 // BK
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(z * steps, ct.minimum((z + 1) * steps, ct.cdiv(width, BK))):
        a = ct.load(x, index=(m, k), shape=(BM, BK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(weight, index=(k, n), shape=(BK, BN), padding_mode=ct.PaddingMode.ZERO)
        if TF32:
            a, b = a.astype(ct.tfloat32), b.astype(ct.tfloat32)
        acc = ct.mma(a, b, acc)
    ct.store(partial, index=(z, m, n), tile=acc.reshape((1, BM, BN)))
