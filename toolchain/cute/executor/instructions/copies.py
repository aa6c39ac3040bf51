"""cp.async: copies from global to shared memory that a thread waits for by groups.

The bytes are written at once, at a time of the copies' own agent. A thread may read them when it has seen that time:
after the wait of the thread that copied, and a barrier or `warp_sync` if it is another.
"""

from __future__ import annotations

import numpy as np

from ..state.access import GMEM, SMEM, count, load, note_write, parts
from ..state.block import Warp
from ..state.call import Call
from ..state.clocks import GENERIC
from ..state.findings import OutOfBounds
from ..state.memory import SHARED_BASE
from ..state.shadow import Access
from .barriers import arrived, mbarrier

AGENT = "cp.async"


def cp_async(call: Call, warp: Warp) -> None:
    """With a third operand, the bytes to read: the rest becomes zero."""
    width = call.number
    wanted = call.arg(warp, 2) if len(call.ins) == 3 else np.full(len(warp.lanes), width, np.int32)
    if (wrong := warp.active & ((wanted < 0) | (wanted > width))).any():
        lane = int(wrong.argmax())
        warp.fail(OutOfBounds, f"reads {wanted[lane]} bytes for a copy of {width}", lane=lane)
    agent = warp.agent(AGENT)
    data = np.zeros((len(warp.lanes), width), np.uint8)
    for bytes_ in np.unique(wanted[warp.active]):
        if bytes_ > 0:
            chosen = wanted == bytes_
            data[:, :bytes_] |= load(warp, GMEM, call.arg(warp, 1), int(bytes_), mask=chosen, align=width)
    for region, lanes, where in parts(warp, SMEM, call.arg(warp, 0), width, "copies"):
        note_write(warp, region, where, Access(agent, warp.copies + 1, warp.pc, lanes))
        warp.block.reach(warp, agent, warp.copies + 1)
        region.data[where] = data[lanes]
        count(warp, where[:, 0] + SHARED_BASE, lanes, width)


def load_once(call: Call, warp: Warp) -> None:
    """Global memory to registers."""
    data = load(warp, GMEM, call.arg(warp, 0), call.number, align=call.number)
    call.give(warp, list(data.view(np.int32).T.copy()))


def commit_group(_: Call, warp: Warp) -> None:
    """The copies so far become a group."""
    warp.copies += 1
    warp.copy_groups.append(warp.copies)


def wait_group(call: Call, warp: Warp) -> None:
    """All but the latest groups have arrived."""
    arrived = warp.copy_groups[: len(warp.copy_groups) - call.number]
    if arrived:
        warp.block.clocks.complete(warp.agent_number, warp.agent(AGENT), arrived[-1])


def mbarrier_arrive(call: Call, warp: Warp) -> None:
    """The copies so far arrive at an mbarrier, for each thread."""
    warp.copies += 1
    published = warp.block.clocks.release(warp.agent_number, warp.active)
    published[GENERIC, warp.agent(AGENT)] = warp.copies
    for address in call.arg(warp, 0)[warp.active]:
        arrived(warp, mbarrier(warp, int(address)), published)
