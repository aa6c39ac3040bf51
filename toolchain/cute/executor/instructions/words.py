"""Words: 64 bits that are read and written whole and say whether they are there (toolchain/cute/nvgpu/words.py).

They order nothing but themselves: of what else a thread has written, nobody knows who has read its word. Memory that
was used as words is so until the launch ends. Before, somebody must have written it, ordered before the first word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
TAGS = (1 << 64 - COUNT) - 1  # those of a sum that goes to ranks
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
    _add(call, warp, terms)


def add_to_ranks(call: Call, warp: Warp) -> None:
    """Address, value, number of terms, tag, an address of each rank: to these with the last term."""
    terms = np.rint(call.arg(warp, 1).astype(np.float64) * 2.0**FRACTION).astype(np.int64) + (1 << COUNT)
    made = _add(call, warp, terms)
    counted = _counts(made)
    tagged = made - (counted.astype(np.int64) << COUNT) + (call.arg(warp, 3).astype(np.int64) << COUNT)
    data, last = tagged[:, None].view(np.uint8), (counted == call.arg(warp, 2)) & warp.active
    for rank in range(call.number):
        for region, lanes, where in _words(warp, GMEM, call.arg(warp, 4 + rank), 1, "writes", last, ranks=True):
            region.data[where] = data[lanes]


def _add(call: Call, warp: Warp, terms: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each active thread has made of its word, one after the other."""
    made = np.zeros(WARP, np.int64)
    for region, lanes, where in _words(warp, GMEM, call.arg(warp, 0), 1, "adds to"):
        for lane, bytes_ in zip(lanes, where, strict=True):
            made[lane] = region.data[bytes_].view(np.int64)[0] + terms[lane]
            region.data[bytes_] = made[lane : lane + 1].view(np.uint8)
    return made


def wait(call: Call, warp: Warp, *, across: bool = False) -> Wait:
    """Address, tag: waits for all words to have it. `across`: the words are pairs that are apart."""

    def tags(words: NDArray[np.int64]) -> Array:
        return words.astype(np.uint32).view(np.int32)

    def values(words: NDArray[np.int64]) -> Array:
        return np.ascontiguousarray((words >> 32).astype(np.int32)).view(np.float32)

    return _wait(call, warp, tags, values, "the tag", across)


def wait_sum(call: Call, warp: Warp, *, across: bool = False) -> Wait:
    """Address, number of terms: waits for all sums to have them."""

    def values(words: NDArray[np.int64]) -> Array:
        return _value(_sums(words))

    return _wait(call, warp, _counts, values, "the number of terms", across)


def wait_ranks(call: Call, warp: Warp) -> Wait:
    """An address of each rank, tag, and whether to ask once: waits for a pair of words of each."""
    ranks = call.number
    once = bool(call.arg(warp, ranks + 1)[warp.active].any())
    places = [
        (region, lanes, where, 2 * rank)
        for rank in range(ranks)
        for region, lanes, where in _words(warp, GMEM, call.arg(warp, rank), 2, "waits for", ranks=True)
    ]

    def values(words: NDArray[np.int64]) -> Array:
        return _value(_sums(words).reshape(WARP, ranks, 2).sum(1))

    def tags(words: NDArray[np.int64]) -> Array:
        return _counts(words) & TAGS

    def late(absent: NDArray[np.bool_]) -> int:
        """1 + the last rank of which a word has not come."""
        return int((absent.any(0).reshape(ranks, 2).any(1) * np.arange(1, ranks + 1)).max())

    wanted = call.arg(warp, ranks).astype(np.int32) & TAGS
    return _wait_at(call, warp, places, wanted, tags, values, "the tag", late, once=once)


def _counts(words: NDArray[np.int64]) -> Array:
    """The numbers of terms."""
    return ((words + HALF) >> COUNT).astype(np.int32)


def _sums(words: NDArray[np.int64]) -> NDArray[np.int64]:
    return words - (_counts(words).astype(np.int64) << COUNT)


def _value(sums: NDArray[np.int64]) -> Array:
    return sums.astype(np.float32) * np.float32(2.0**-FRACTION)


def _wait(call: Call, warp: Warp, tags: Any, values: Any, said: str, across: bool) -> Wait:
    count, address = call.number, call.arg(warp, 0).copy()
    space = SMEM if address[warp.first_active()] < GLOBAL_BASE else GMEM
    each = 2 if across else count  # words side by side
    places = [
        (region, lanes, where, first)
        for first in range(0, count, each)
        for region, lanes, where in _words(warp, space, address + first // 2 * APART, each, "waits for")
    ]
    return _wait_at(call, warp, places, call.arg(warp, 1).copy(), tags, values, said)


def _wait_at(
    call: Call, warp: Warp, places: Sequence[tuple[Region, Any, Bytes, int]], wanted: Array, tags: Any, values: Any,
    said: str, late: Callable[[NDArray[np.bool_]], int] = lambda absent: int(absent.any()), *, once: bool = False,
) -> Wait:  # fmt: skip
    """`places`: of some threads words that lie side by side, and the number of the first. `late`: the last result, of
    which words of which threads have not come. `once`: it does not wait."""
    count = places[-1][3] + places[-1][2].shape[1] // WORD
    active = warp.active.copy()

    def words() -> NDArray[np.int64]:
        made = np.zeros((WARP, count), np.int64)
        for region, lanes, where, first in places:
            made[lanes, first : first + where.shape[1] // WORD] = region.data[where].view(np.int64)
        return made

    def absent(found: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (tags(found) != wanted[:, None]) & active[:, None]

    def what() -> str:
        lane, number = np.argwhere(absent(words()))[0]
        region, lanes, where, first = next(
            part for part in places if lane in part[1] and 0 <= number - part[3] < part[2].shape[1] // WORD
        )
        byte = int(where[list(lanes).index(lane), (number - first) * WORD])
        return f"{said} {wanted[lane]} of the word at {region.place(byte)}, which has {tags(words())[lane, number]}"

    def resume() -> None:
        found = words()
        call.give(warp, [*values(found).T.copy(), np.array([late(absent(found))], np.int32)])

    return Wait(what, lambda: once or not absent(words()).any(), resume, bounded=True)


def _words(
    warp: Warp, space: int, address: Array, count: int, verb: str, mask: Any = None, *, ranks: bool = False
) -> list[tuple[Region, Any, Bytes]]:
    """The bytes of the active threads' words. `ranks`: the access is at the scope of all GPUs. Raises a finding if they
    were accessed as something else."""
    found = list(parts(warp, space, address, WORD * count, verb, mask, align=WORD * min(count, 2)))
    for region, lanes, where in found:
        if region.shared and not ranks:
            said = f"{verb} {region.place(int(where[0, 0]))} as a word of one GPU: other ranks reach it"
            warp.fail(Race, said, tensor=region.name, address=int(where[0, 0]))
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
