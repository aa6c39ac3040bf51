"""How ranks meet: a block waits for the blocks of its number on all other ranks. After that it may read what their
earlier launches have written, and what it writes itself may not be overwritten before the next meeting."""

from __future__ import annotations

import cuda.tile as ct

ACQUIRE, RELEASE, SYSTEM = ct.MemoryOrder.ACQUIRE, ct.MemoryOrder.RELEASE, ct.MemoryScope.SYS


def meet(flags, state, rank, SPINS):
    """Tells the same block of every other rank that this one has come, and waits for them. One that asks SPINS times in
    vain gives up, says so in `state`, and never waits again."""
    b, ranks = ct.bid(0), flags.shape[0]
    for r in range(ranks):
        if r != rank:
            ct.atomic_add(flags, (r, rank, b), 1, memory_order=RELEASE, memory_scope=SYSTEM)
    came = ct.load(state, index=(b, 0), shape=(1, 1), allow_tma=False).reshape(()) + 1
    gone = ct.load(state, index=(b, 1), shape=(1, 1), allow_tma=False).reshape(())
    for r in range(ranks):
        if r != rank:
            seen = ct.atomic_add(flags, (rank, r, b), 0, memory_order=ACQUIRE, memory_scope=SYSTEM)
            turns = 0
            while seen - came < 0 and turns < SPINS and gone == 0:  # a difference, because counts wrap around
                seen = ct.atomic_add(flags, (rank, r, b), 0, memory_order=ACQUIRE, memory_scope=SYSTEM)
                turns += 1
            if seen - came < 0 and gone == 0:
                gone = r + 1
    ct.store(state, index=(b, 0), tile=came.reshape((1, 1)), allow_tma=False)
    ct.store(state, index=(b, 1), tile=gone.reshape((1, 1)), allow_tma=False)
