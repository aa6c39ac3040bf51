"""Products of 8-bit numbers with a scale for each row of both operands, whatever the numbers are.

Persistent, as persistent.py. Both operands are walked along their rows, as the tensor cores take 8 bits."""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import add_residual, bias_rows, gelu_of_value, load, load_bias, store, tile_place


def persistent_scaled(x, x_scales, weight, weight_scales, bias, out, BM, BN, BK, GROUP, product, epilogue):
    """The holes: `product(m, n, steps)` makes the product of their rows m and n over so many steps of K, in f32;
    `epilogue(value, m, n, dtype)` gets it scaled, with its bias, and what it is stored as."""
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[0], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        line = load_bias(bias, n, BN)
        columns = load(weight_scales, (n,), (BN,))
        acc = product(m, n, ct.cdiv(x.shape[1], BK))
        rows = load(x_scales, (m,), (BM,))
        value = acc * rows[:, None] * columns[None, :] + bias_rows(line)
        store(out, (m, n), epilogue(value, m, n, out.dtype))


def plain(value, m, n, dtype):
    """An epilogue: out = (x @ weight.T) * scales + bias"""
    return value


def activated(value, m, n, dtype):
    """out = gelu of it"""
    return gelu_of_value(value, dtype)


def added(schedule, x, x_scales, weight, weight_scales, bias, residual, out, *sizes):
    """out = residual + it. The residual may be the output itself: each block reads just what it writes."""

    def epilogue(value, m, n, dtype):
        return add_residual(value, load(residual, (m, n), (sizes[0], sizes[1])))

    schedule(x, x_scales, weight, weight_scales, bias, out, *sizes, epilogue)
