"""Products without a bias, on the schedule of persistent.py, and SwiGLU: a product over two weights."""

from __future__ import annotations

import cuda.tile as ct

from .persistent import persistent
from .products import (
    Bool,
    Int,
    add_residual,
    halved,
    inverse_rms,
    load,
    nothing,
    operand,
    store,
    store_directly,
    sum_of_parts,
    tile_place,
)
from .small_m import (
    STEPS,
    gemv_step,
    inverse_rms_at_once,
    load_row,
    load_weight,
    load_weight_directly,
)
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


def persistent_pair(x, gate, up, out, BM, BN, BK, GROUP, TF32, epilogue):
    """Both products of a tile are made by one block, which reads x once. `epilogue` makes of them, and of the row of
    the tile, the result. The grid has one row: see unknown_zero."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(gate.shape[1], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        gate_acc, up_acc = unknown_zero(BM, BN), unknown_zero(BM, BN)
        for k in range(ct.cdiv(x.shape[1], BK)):
            gate_acc, up_acc = pair_step(x, gate, up, m, n, k, gate_acc, up_acc, BM, BN, BK, TF32)
        store(out, (m, n), epilogue(gate_acc, up_acc, m))


@ct.kernel
def swiglu(x, gate, up, out, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    """out = silu(x @ gate) * (x @ up)"""

    def epilogue(gate_product, up_product, _):
        return gated(gate_product, up_product, out.dtype)

    persistent_pair(x, gate, up, out, BM, BN, BK, GROUP, TF32, epilogue)


@ct.kernel
def rms_swiglu(x, squares, gate, up, out, eps, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    """swiglu of x divided by each row's root mean square"""

    def epilogue(gate_product, up_product, m):
        scale = inverse_rms(sum_of_parts(squares, m, BM), x.shape[1], eps)
        return gated(gate_product * scale, up_product * scale, out.dtype)

    persistent_pair(x, gate, up, out, BM, BN, BK, GROUP, TF32, epilogue)


def pair_one_tile(x, squares, gate, up, out, eps, BM, BN, BK, PARTS, TF32, load_tiles, multiply_both, store):
    """rms_swiglu of few rows: see small_m.py."""
    n, m = ct.bid(0), ct.bid(1)
    gates, ups = load_tiles(gate, 0, n, BN, BK), load_tiles(up, 0, n, BN, BK)
    ct.grid_dependency_control_wait()
    scale = inverse_rms_at_once(squares, m, BM, x.shape[1], eps, PARTS)
    gate_product, up_product = multiply_both(x, gates, ups, m, BM, BN, BK, TF32)
    store(out, (m, n), gated(gate_product * scale, up_product * scale, out.dtype))


def multiply_both(x, gates, ups, m, BM, BN, BK, TF32):
    """The f32 tiles of the rows m of x with the loaded tiles of both weights."""
    gate_acc, up_acc = ct.zeros((BM, BN), ct.float32), ct.zeros((BM, BN), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        a = operand(load(x, (m, k), (BM, BK)), TF32)
        gate_acc = ct.mma(a, operand(gates[k], TF32), gate_acc)
        up_acc = ct.mma(a, operand(ups[k], TF32), up_acc)
    return gate_acc, up_acc


def multiply_both_by_one_row(x, gates, ups, m, BM, BN, BK, TF32):
    gate_total, up_total = ct.zeros((BK, BN), ct.float32), ct.zeros((BK, BN), ct.float32)
    for k in ct.static_iter(range(STEPS)):
        a = load_row(x, m, k, BK)
        gate_total, up_total = gemv_step(a, gates[k], gate_total), gemv_step(a, ups[k], up_total)
    return ct.sum(gate_total, axis=0, keepdims=True), ct.sum(up_total, axis=0, keepdims=True)


@ct.kernel
def rms_swiglu_small_m(x, squares, gate, up, out, eps, BM: Int, BN: Int, BK: Int, PARTS: Int, TF32: Bool):
    pair_one_tile(x, squares, gate, up, out, eps, BM, BN, BK, PARTS, TF32, load_weight, multiply_both, store)


@ct.kernel
def rms_swiglu_gemv(x, squares, gate, up, out, eps, BM: Int, BN: Int, BK: Int, PARTS: Int, TF32: Bool):
    pair_one_tile(
        x, squares, gate, up, out, eps, BM, BN, BK, PARTS, TF32, load_weight_directly, multiply_both_by_one_row,
        store_directly,
    )  # fmt: skip
