"""Flags: counts that are added to with a release and waited for with an acquire (toolchain/cute/nvgpu/flags.py).

Who has waited for a count knows what those knew who have added to it, up to the one with whom it was reached: what came
later might not have come yet.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..state.access import GMEM, not_ahead, own, parts
from ..state.block import Wait, Warp
from ..state.call import Call
from ..state.clocks import History
from ..state.findings import Race
from ..state.memory import NO_BLOCK, Region
from ..state.shadow import Bytes

WIDTH = 4  # bytes


def add(call: Call, warp: Warp) -> None:
    """Address, number."""
    clocks = warp.block.clocks
    published = clocks.release(warp.agent_number, warp.active)
    for region, lane, where in _counts(call, warp, "adds to"):
        there = region.data[where].view(np.int32)
        region.data[where] = (there + call.arg(warp, 1)[lane]).astype(np.int32).view(np.uint8)
        region.flags.setdefault(int(where[0]), History()).add(_count(region, where), published)


def wait(call: Call, warp: Warp) -> Wait:
    """Address, number, and whether to ask once. It waits until the count is at least the number, and gives up never."""
    places = _counts(call, warp, "waits for")
    wanted = call.arg(warp, 1).tolist()

    def missing() -> list[tuple[Region, int, Bytes]]:
        return [place for place in places if not _enough(wanted[place[1]], _count(place[0], place[2]))]

    def what() -> str:
        region, lane, where = missing()[0]
        return f"the count {wanted[lane]} of {region.place(int(where[0]))}, which is {_count(region, where)}"

    def resume() -> None:
        for region, lane, where in places:
            known, number = region.flags.get(int(where[0]), History()), wanted[lane]
            if (said := known.up_to(partial(_enough, number))) is not None:
                warp.block.clocks.acquire(warp.agent_number, said)
        warp.block.clocks.join(warp.agent_number)
        call.give(warp, [np.zeros(1, np.int32)])

    return Wait(what, lambda: not missing(), resume)


def _count(region: Region, where: Bytes) -> int:
    return int(region.data[where].view(np.int32)[0])


def _enough(wanted: int, count: int) -> bool:
    """A difference of 32 bits is not negative, for counts wrap around."""
    return (count - wanted) & 1 << 31 == 0


def _counts(call: Call, warp: Warp, verb: str) -> list[tuple[Region, int, Bytes]]:
    """The count of each active thread. Raises Race if it was accessed as something else."""
    found: list[tuple[Region, int, Bytes]] = []
    for region, lanes, where in parts(warp, GMEM, call.arg(warp, 0), WIDTH, verb):
        not_ahead(warp, region, where, own(warp, lanes), verb)
        others: list[Any] = [blocks[where] for blocks in (region.writers, region.readers) if len(blocks)]
        if any((known != NO_BLOCK).any() for known in others):
            said = "which others accessed as something else, and nothing orders the two"
            warp.fail(Race, f"{verb} {region.place(int(where[0, 0]))}, {said}", tensor=region.name)
        region.words[where] = True
        found += [(region, int(lane), bytes_) for lane, bytes_ in zip(lanes, where, strict=True)]
    return found
