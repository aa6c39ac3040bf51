"""Products without a bias, on the schedule of persistent.py, and SwiGLU: a product over two weights."""

from __future__ import annotations

import cuda.tile as ct

from .persistent import persistent
from .products import Bool, Int, add_residual, halved, load, nothing, operand, store, tile_place
from .split_n import unknown_zero


@ct.kernel
def matmul(x, weight, out, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    """out = x @ weight"""

    def epilogue(product, _, m, n):
        return product

    persistent(x, weight, out, BM, BN, BK, GROUP, TF32, nothing, epilogue)


@ct.kernel
def matmul_residual(x, weight, residual, out, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    """out = residual + x @ weight. The residual may be the output itself: each block reads just what it writes."""

    def epilogue(product, _, m, n):
        return add_residual(product, load(residual, (m, n), (BM, BN)))

    persistent(x, weight, out, BM, BN, BK, GROUP, TF32, nothing, epilogue)


def gated(gate, up, storage):
    """silu(gate) * up of f32 tiles. silu(x) = x / (1 + e^-x) = h + h tanh(h) with h = x/2; tanh: see gelu_of_half."""
    h = halved(gate)
    if storage == ct.float32:
        return (h * ct.tanh(h) + h) * up
    return (h * ct.tanh(h, rounding_mode=ct.RoundingMode.APPROX) + h) * up


def pair_step(x, gate, up, m, n, k, gate_acc, up_acc, BM, BN, BK, TF32):
    """One step of K for both weights."""
    a, b, c = load(x, (m, k), (BM, BK)), load(gate, (k, n), (BK, BN)), load(up, (k, n), (BK, BN))
    a, b, c = operand(a, TF32), operand(b, TF32), operand(c, TF32)
    return ct.mma(a, b, gate_acc), ct.mma(a, c, up_acc)


@ct.kernel
def swiglu(x, gate, up, out, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    """out = silu(x @ gate) * (x @ up). Both products of a tile are made by one block, which reads x once. The grid has
    one row: see unknown_zero."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(gate.shape[1], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        gate_acc, up_acc = unknown_zero(BM, BN), unknown_zero(BM, BN)
        for k in range(ct.cdiv(x.shape[1], BK)):
            gate_acc, up_acc = pair_step(x, gate, up, m, n, k, gate_acc, up_acc, BM, BN, BK, TF32)
        store(out, (m, n), gated(gate_acc, up_acc, out.dtype))
