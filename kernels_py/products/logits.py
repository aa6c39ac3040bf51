"""out = x @ weight.T: both operands are walked along their rows, and the weight's tile is turned over. Persistent, with
one accumulator and, split-N, with two."""

from __future__ import annotations

import cuda.tile as ct

from .products import ZERO, Bool, Int, load, operand, store, tile_place
from .split_n import split_columns, store_split, unknown_zero


@ct.kernel
def logits(x, weight, out, BM: Int, BN: Int, BK: Int, GROUP: Int, TF32: Bool):
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[0], BN)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        acc = ct.zeros((BM, BN), ct.float32)
        for k in range(ct.cdiv(x.shape[1], BK)):
            a, b = load(x, (m, k), (BM, BK)), load(weight, (n, k), (BN, BK))
            a, b = operand(a, TF32), operand(b, TF32)
            acc = ct.mma(a, ct.permute(b, (1, 0)), acc)
        store(out, (m, n), acc)


@ct.kernel
def logits_split_n(x, weight, out, BM: Int, BN: Int, BR: Int, BK: Int, GROUP: Int, TF32: Bool):
    m_tiles, n_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[0], BN + BR)
    w_left = weight.tiled_view((BN, BK), padding_mode=ZERO, traversal_steps=(BR, BK))
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        left, right = split_columns(n, BN, BR)
        acc, rest = unknown_zero(BM, BN), unknown_zero(BM, BR)
        for k in range(ct.cdiv(x.shape[1], BK)):
            a, b, c = load(x, (m, k), (BM, BK)), w_left.load((left, k)), load(weight, (right, k), (BR, BK))
            a, b, c = operand(a, TF32), operand(b, TF32), operand(c, TF32)
            acc = ct.mma(a, ct.permute(b, (1, 0)), acc)
            rest = ct.mma(a, ct.permute(c, (1, 0)), rest)
        store_split(out, m, left, right, acc, rest, BM, BN, BR)
