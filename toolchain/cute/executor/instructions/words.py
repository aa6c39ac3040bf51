"""Words: 64 bits that are read and written whole and say whether they are there (toolchain/cute/nvgpu/words.py).

They order nothing but themselves: of what else a thread has written, nobody knows who has read its word. Memory that
was used as words is so until the launch ends. Before, somebody must have written it, ordered before the first word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...nvgpu.words import APART, COUNT, FRACTION
from ..state.access import CLUSTER_SMEM, GMEM, SMEM, own, parts
from ..state.block import WARP, Array, Wait, Warp
from ..state.call import Call
from ..state.findings import Race, Uninitialised
from ..state.memory import GLOBAL_BASE, NO_BLOCK, Region
from ..state.shadow import Bytes

WORD = 8  # bytes
HALF = 1 << COUNT - 1  # more than any sum, so that a negative one takes no term away


def store(call: Call, warp: Warp) -> None:
    """Address, tag, values: a number is an address in the cluster's shared memory."""
    address, space = call.arg(warp, 0), GMEM
    if address.dtype.itemsize == 4:
        address, space = address.astype(np.int64), CLUSTER_SMEM
    made = np.zeros((WARP, call.number), np.int64)
    for i in range(call.number):
        value = np.ascontiguousarray(call.arg(warp, 2 + i)).view(np.int32)
        made[:, i] = value.astype(np.int64) << 32 | call.arg(warp, 1).view(np.uint32)
    data = made.view(np.uint8)
    for region, lanes, where in _words(warp, space, address, call.number, "writes"):
        region.data[where] = data[lanes]


def add(call: Call, warp: Warp) -> None:
    """Address, value."""
    terms = np.rint(call.arg(warp, 1).astype(np.float64) * 2.0**FRACTION).astype(np.int64) + (1 << COUNT)
    for region, lanes, where in _words(warp, GMEM, call.arg(warp, 0), 1, "adds to"):
        for lane, bytes_ in zip(lanes, where, strict=True):
            there = region.data[bytes_].view(np.int64)
            region.data[bytes_] = (there + terms[lane]).view(np.uint8)


def wait(call: Call, warp: Warp, *, across: bool = False) -> Wait:
    """Address, tag: waits for all words to have it. `across`: the words are pairs that are apart."""

    def tags(words: NDArray[np.int64]) -> Array:
        return words.astype(np.uint32).view(np.int32)

    def values(words: NDArray[np.int64]) -> Array:
        return np.ascontiguousarray((words >> 32).astype(np.int32)).view(np.float32)

    return _wait(call, warp, tags, values, "the tag", across)


def wait_sum(call: Call, warp: Warp, *, across: bool = False) -> Wait:
    """Address, number of terms: waits for all sums to have them."""

    def counts(words: NDArray[np.int64]) -> Array:
        return ((words + HALF) >> COUNT).astype(np.int32)

    def values(words: NDArray[np.int64]) -> Array:
        sums = words - (counts(words).astype(np.int64) << COUNT)
        return sums.astype(np.float32) * np.float32(2.0**-FRACTION)

    return _wait(call, warp, counts, values, "the number of terms", across)


def _wait(call: Call, warp: Warp, tags: Any, values: Any, said: str, across: bool) -> Wait:
    count, address, wanted = call.number, call.arg(warp, 0).copy(), call.arg(warp, 1).copy()
    space = SMEM if address[warp.first_active()] < GLOBAL_BASE else GMEM
    each = 2 if across else count  # words side by side
    places = [
        (region, lanes, where, first)
        for first in range(0, count, each)
        for region, lanes, where in _words(warp, space, address + first // 2 * APART, each, "waits for")
    ]
    active = warp.active.copy()

    def words() -> NDArray[np.int64]:
        made = np.zeros((WARP, count), np.int64)
        for region, lanes, where, first in places:
            made[lanes, first : first + each] = region.data[where].view(np.int64)
        return made

    def missing() -> NDArray[np.bool_]:
        return (tags(words()) != wanted[:, None]) & active[:, None]

    def what() -> str:
        lane, number = np.argwhere(missing())[0]
        region, lanes, where, first = next(part for part in places if lane in part[1] and 0 <= number - part[3] < each)
        byte = int(where[list(lanes).index(lane), (number - first) * WORD])
        return f"{said} {wanted[lane]} of the word at {region.place(byte)}, which has {tags(words())[lane, number]}"

    def resume() -> None:
        made = values(words())
        call.give(warp, [*made.T.copy(), np.zeros(1, np.int32)])

    return Wait(what, lambda: not missing().any(), resume)


def _words(warp: Warp, space: int, address: Array, count: int, verb: str) -> list[tuple[Region, Any, Bytes]]:
    """The bytes of the active threads' words. Raises a finding if they were accessed as something else."""
    found = list(parts(warp, space, address, WORD * count, verb, align=WORD * min(count, 2)))
    for region, lanes, where in found:
        _check(warp, region, lanes, where, verb)
        region.words[where] = True
    return found


def _check(warp: Warp, region: Region, lanes: Any, where: Bytes, verb: str) -> None:
    at = None if region.ready else region.shadow.first_unwritten(where)
    if at is not None:
        byte = int(where.reshape(-1)[at])
        warp.fail(
            Uninitialised, f"{verb} {region.place(byte)} as a word, which nothing has made one", tensor=region.name
        )
    seen = warp.block.clocks.seen[0, warp.agent_number]
    new = ~region.words[where].all(axis=1)
    if not new.any():
        return
    fresh, access = where[new], own(warp, lanes[new])
    joined = warp.block.clocks.joined[warp.agent_number]
    conflict = region.shadow.unseen_write(fresh, seen, access, joined) if not len(region.writers) else None
    others = [blocks[fresh] for blocks in (region.writers, region.readers, region.reducers) if len(blocks)]
    if conflict is not None or any((known != NO_BLOCK).any() for known in others):
        byte = int(fresh.reshape(-1)[conflict.place if conflict else 0])
        said = "which others accessed as something else, and nothing orders the two"
        warp.fail(Race, f"{verb} {region.place(byte)} as a word, {said}", tensor=region.name, address=byte)
