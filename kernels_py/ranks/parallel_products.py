"""Products over several GPUs whose tiles travel while the next ones are multiplied. See docs/several-gpus.md.

`matmul_reduce_scatter`: each rank has a part of K. It makes the tiles of the other ranks first and stores each to the
rank that adds it up; its own tiles come last, when the others' have long arrived. Block b of each rank makes the same
tiles of a piece, so that it waits for block b of the others alone.

`all_gather_matmul`: each rank has some rows and some columns. It sends its rows to the others, multiplies them itself,
and then what has arrived. A row is sent by several blocks and read by several, so that all blocks wait for all.
"""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import ZERO, Bool, Int, load, operand, tile_place
from .meeting import ACQUIRE, RELEASE, SYSTEM, meet


def piece_product(x, r, weight, m, n, BM, BN, BK, TF32):
    """The f32 tile (m, n) of x[r] @ weight."""
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.cdiv(x.shape[2], BK)):
        a = ct.load(x, index=(r, m, k), shape=(1, BM, BK), padding_mode=ZERO).reshape((BM, BK))
        acc = ct.mma(operand(a, TF32), operand(load(weight, (k, n), (BK, BN)), TF32), acc)
    return acc


@ct.kernel
def matmul_reduce_scatter(
    x, weight, out, arrived, flags, state, rank, BM: Int, BN: Int, BK: Int, GROUP: Int, SPINS: Int, TF32: Bool
):
    """out = the sum over the ranks of x[rank] @ weight: a rank's own product in f32, and the others' as they were
    rounded, in the order of the ranks."""
    ct.grid_dependency_control_wait()
    meet(flags, state, rank, SPINS)  # all earlier launches have ended: nobody reads what is stored to him now
    ranks = x.shape[0]
    m_tiles, n_tiles = ct.cdiv(x.shape[1], BM), ct.cdiv(weight.shape[1], BN)
    for ahead in range(1, ranks):
        r = (rank + ahead) % ranks
        for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
            m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
            made = piece_product(x, r, weight, m, n, BM, BN, BK, TF32).astype(arrived.dtype)
            ct.store(arrived, index=(r, rank, m, n), tile=made.reshape((1, 1, BM, BN)), allow_tma=False)
    meet(flags, state, rank, SPINS)
    for tile in range(ct.bid(0), m_tiles * n_tiles, ct.num_blocks(0)):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        total = piece_product(x, rank, weight, m, n, BM, BN, BK, TF32)
        for s in range(ranks):
            if s != rank:
                part = ct.load(arrived, (rank, s, m, n), (1, 1, BM, BN), padding_mode=ZERO, allow_tma=False)
                total = total + part.reshape((BM, BN)).astype(ct.float32)
        ct.store(out, index=(m, n), tile=total.astype(out.dtype))


def tell_all(counts, rank):
    """One more block of this rank has come."""
    for r in range(counts.shape[0]):
        if r != rank:
            ct.atomic_add(counts, (r, rank), 1, memory_order=RELEASE, memory_scope=SYSTEM)


def wait_for(counts, rank, wanted, gone, SPINS):
    """Waits until so many blocks of each other rank have come, since the beginning. The result: 1 + the rank that it
    gave up waiting for, or what `gone` was."""
    for r in range(counts.shape[0]):
        if r != rank:
            seen = ct.atomic_add(counts, (rank, r), 0, memory_order=ACQUIRE, memory_scope=SYSTEM)
            turns = 0
            while seen - wanted < 0 and turns < SPINS and gone == 0:  # a difference, because counts wrap around
                seen = ct.atomic_add(counts, (rank, r), 0, memory_order=ACQUIRE, memory_scope=SYSTEM)
                turns += 1
            if seen - wanted < 0 and gone == 0:
                gone = r + 1
    return gone


@ct.kernel
def all_gather_matmul(
    x, weight, out, gathered, counts, turns, rank, BM: Int, BN: Int, BK: Int, GROUP: Int, SPINS: Int, TF32: Bool
):
    """out[r] = the rows of rank r @ weight. Every launch has as many blocks: the counts are of all of them."""
    ct.grid_dependency_control_wait()
    b, blocks, ranks = ct.bid(0), ct.num_blocks(0), counts.shape[0]
    came = ct.load(turns, index=(b, 0), shape=(1, 1), allow_tma=False).reshape(())
    gone = ct.load(turns, index=(b, 1), shape=(1, 1), allow_tma=False).reshape(())
    tell_all(counts, rank)
    # A block that has come: its rank's earlier launches have ended, and nobody reads what is stored to him now.
    gone = wait_for(counts, rank, came * blocks + 1, gone, SPINS)
    m_tiles, n_tiles, k_tiles = ct.cdiv(x.shape[0], BM), ct.cdiv(weight.shape[1], BN), ct.cdiv(x.shape[1], BK)
    for ahead in range(1, ranks):
        r = (rank + ahead) % ranks
        for tile in range(b, m_tiles * k_tiles, blocks):
            m, k = tile // k_tiles, tile % k_tiles
            sent = load(x, (m, k), (BM, BK)).reshape((1, 1, BM, BK))
            ct.store(gathered, index=(r, rank, m, k), tile=sent, allow_tma=False)
    tell_all(counts, rank)
    for tile in range(b, m_tiles * n_tiles, blocks):
        m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
        acc = ct.zeros((BM, BN), ct.float32)
        for k in range(k_tiles):
            a = load(x, (m, k), (BM, BK))
            acc = ct.mma(operand(a, TF32), operand(load(weight, (k, n), (BK, BN)), TF32), acc)
        ct.store(out, index=(rank, m, n), tile=acc.astype(out.dtype).reshape((1, BM, BN)))
    gone = wait_for(counts, rank, came * blocks + 2 * blocks, gone, SPINS)
    for ahead in range(1, ranks):
        r = (rank + ahead) % ranks
        for tile in range(b, m_tiles * n_tiles, blocks):
            m, n = tile_place(tile, m_tiles, n_tiles, GROUP)
            acc = ct.zeros((BM, BN), ct.float32)
            for k in range(k_tiles):
                a = ct.load(gathered, (rank, r, m, k), (1, 1, BM, BK), padding_mode=ZERO).reshape((BM, BK))
                acc = ct.mma(operand(a, TF32), operand(load(weight, (k, n), (BK, BN)), TF32), acc)
            ct.store(out, index=(r, m, n), tile=acc.astype(out.dtype).reshape((1, BM, BN)))
    ct.store(turns, index=(b, 0), tile=(came + 2).reshape((1, 1)), allow_tma=False)
    ct.store(turns, index=(b, 1), tile=gone.reshape((1, 1)), allow_tma=False)
