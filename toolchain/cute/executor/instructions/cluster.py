"""Clusters: blocks that run together, reach each other's shared memory, and have a barrier.

The blocks of a cluster have one set of clocks, so that what one does in another's memory is ordered as all else. An
address in another block's shared memory is that of the same place in the own, plus a window for each block. Source: PTX
ISA 9.0, "mapa", "barrier.cluster", "Memory Consistency Model".
"""

from __future__ import annotations

import numpy as np

from ..state.block import WARP, WINDOW, Block, Wait, Warp
from ..state.call import Call
from ..state.findings import DivergentBarrier, Finding, MissingWait
from .barriers import CLUSTER, arrive_at, arrived, mbarrier


def rank(call: Call, warp: Warp) -> None:
    """The block's number in its cluster."""
    call.give(warp, [np.array([warp.block.rank], np.int32)])


def count(call: Call, warp: Warp) -> None:
    """The blocks of the cluster."""
    call.give(warp, [np.array([len(warp.block.cluster.blocks)], np.int32)])


def map_block(call: Call, warp: Warp) -> None:
    """The address of the same place in the shared memory of a block of the cluster."""
    ranks, blocks = call.arg(warp, 1), len(warp.block.cluster.blocks)
    if (wrong := warp.active & ((ranks < 0) | (ranks >= blocks))).any():
        lane = int(wrong.argmax())
        warp.fail(Finding, f"asks for block {ranks[lane]} of a cluster of {blocks}", lane=lane)
    own = call.arg(warp, 0) % WINDOW
    call.give(warp, [np.where(ranks == warp.block.rank, own, own + (ranks + 1) * WINDOW).astype(np.int32)])


def masked(call: Call, warp: Warp, index: int) -> list[Block]:
    """The blocks of the cluster whose bits an operand sets. Raises a finding for one that is not there, or for none."""
    mask, blocks = call.one(warp, index), warp.block.cluster.blocks
    if mask <= 0 or mask >> len(blocks):
        warp.fail(Finding, f"the mask {mask:#b} of a cluster of {len(blocks)} blocks")
    return [block for block in blocks if mask >> block.rank & 1]


def arrive(call: Call, warp: Warp) -> None:
    """The cluster's barrier. A relaxed arrival says nothing of what the threads did before."""
    blocks = warp.block.cluster.blocks
    threads = sum(-(-block.threads // WARP) * WARP for block in blocks)
    waits, one = arrive_at(warp, CLUSTER, threads, warp.block.cluster.barriers, releases=call.atom != "relaxed")

    def resume() -> None:
        if one.last is not None:
            warp.block.clocks.acquire(warp.agent_number, one.last)

    warp.cluster = Wait(waits.what, waits.ready, resume)


def wait(_: Call, warp: Warp) -> Wait:
    """Waits for what `arrive` began."""
    if warp.cluster is None:
        warp.fail(DivergentBarrier, "waits at the cluster's barrier without having arrived")
    found, warp.cluster = warp.cluster, None
    return found


def arrive_remote(call: Call, warp: Warp) -> None:
    """Each active thread arrives at an mbarrier of a block of the cluster."""
    clocks = warp.block.clocks
    now = clocks.now(warp.agent_number)
    published = clocks.release(warp.agent_number, warp.active)
    for address in call.arg(warp, 0)[warp.active]:
        block, own = warp.block.home(warp, int(address))
        block.reach(warp, warp.agent_number, now)
        arrived(warp, mbarrier(warp, own, block), published)


def at_end(block: Block) -> None:
    """Raises a finding if a copy, or another block, reached the memory of one and no warp of it knows of that: it might
    have ended."""
    first, last = block.warps[0].agent_number, block.warps[-1].agent_number + 1
    for agent, (time, warp, pc) in block.reached.items():
        if not (block.clocks.seen[0, first:last, agent] >= time).any():
            warp.pc = pc
            if warp.block is block:
                warp.fail(MissingWait, "still writes shared memory when the block ends: nothing has waited for it")
            warp.fail(Finding, f"reaches shared memory of block {block.place}, which may have ended by then")
