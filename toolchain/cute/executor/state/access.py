"""Reads and writes of memory, each checked: bounds, alignment, whether the bytes were written, and races."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .block import NEVER, WARP, WINDOW, Array, Ticket, Warp
from .clocks import ASYNC, ASYNC_GLOBAL, GENERIC
from .findings import LaneRace, Misaligned, MissingFence, MissingWait, OutOfBounds, Race, Uninitialised
from .memory import NO_BLOCK, SEVERAL, SHARED_BASE, Region
from .shadow import EARLIER, Access, Bytes, Conflict

GMEM, SMEM, CLUSTER_SMEM = 1, 3, 7  # address spaces
LOCAL_BASE = 1 << 40  # of registers that have addresses
BEYOND = "reaches beyond the registers of the tensor"
Part = tuple[Region, NDArray[np.int64], Bytes]  # memory, threads of the warp, and the bytes of each


def parts(
    warp: Warp, space: int, addresses: Array, width: int, verb: str, mask: Any = None, *, align: int = 0
) -> Iterator[Part]:
    """The bytes that the active threads access, by region. Raises OutOfBounds or Misaligned."""
    lanes = np.flatnonzero(warp.active if mask is None else warp.active & mask)
    if not len(lanes):
        return
    near = (addresses if len(addresses) == WARP else np.broadcast_to(addresses, WARP))[lanes]
    align = align or width
    if (wrong := near % align != 0).any():
        lane = int(lanes[wrong.argmax()])
        name, place = _named(warp, space, int(near[wrong.argmax()]))
        warp.fail(Misaligned, f"{verb} {width} bytes at {place}, an address that is no multiple of {align}", lane=lane,
                  tensor=name, address=int(near[wrong.argmax()]))  # fmt: skip
    for region, chosen, offsets in _regions(warp, space, near):
        where = offsets[:, None] + np.arange(width)
        bad = (offsets < 0) | (offsets > len(region.data) - width)
        if region.inside is not None:
            bad |= ~region.inside[np.clip(where, 0, len(region.data) - 1)].all(axis=1)
        if bad.any():
            at = int(bad.argmax())
            _outside(warp, region, int(offsets[at]), width, verb, int(lanes[chosen][at]))
        yield region, lanes[chosen], where


def _regions(warp: Warp, space: int, addresses: NDArray[np.int64]) -> Iterator[tuple[Region, Any, NDArray[np.int64]]]:
    """The memories of some addresses, which of them lie there, and where."""
    memory = warp.block.memory
    if space == SMEM:
        yield warp.block.shared, slice(None), addresses - SHARED_BASE
        return
    if space == CLUSTER_SMEM:
        windows = addresses // WINDOW
        for window in np.unique(windows):
            block, _ = warp.block.home(warp, int(window) * WINDOW)
            block.reach(warp, warp.agent_number, warp.block.clocks.now(warp.agent_number))
            chosen = windows == window
            yield block.shared, chosen, addresses[chosen] % WINDOW - SHARED_BASE
        return
    if not memory.regions:
        warp.fail(OutOfBounds, "the launch has no arrays")
    numbers = np.searchsorted(memory.bases, addresses + GAP_BEFORE, side="right") - 1
    if (numbers == numbers[0]).all():
        region = memory.regions[max(int(numbers[0]), 0)]
        yield region, slice(None), addresses - region.base
        return
    for number in np.unique(numbers):
        region, chosen = memory.regions[max(int(number), 0)], numbers == number
        yield region, chosen, addresses[chosen] - region.base


GAP_BEFORE = 1024  # an address so close before an array is named by it


def _named(warp: Warp, space: int, address: int) -> tuple[str, str]:
    region, _, offsets = next(_regions(warp, space, np.array([address])))
    return region.name, region.place(int(offsets[0]))


def _outside(warp: Warp, region: Region, offset: int, width: int, verb: str, lane: int) -> NoReturn:
    shape = f"its shape {region.array.shape}" if region.array is not None else f"its {len(region.data)} bytes"
    said = f"{verb} {width} bytes from {region.place(offset)} on, outside of {shape}"
    warp.fail(OutOfBounds, said, lane=lane, tensor=region.name, address=offset)


def own(warp: Warp, lanes: NDArray[np.int64] | None) -> Access:
    """An access by the threads of a warp themselves."""
    return Access(warp.agent_number, warp.block.clocks.now(warp.agent_number), warp.pc, lanes)


def note_read(warp: Warp, region: Region, where: Bytes, access: Access, plane: int = GENERIC, seen: Any = None) -> None:
    """Checks and notes a read. `seen`: the clock to rely on, by default the warp's. Raises Uninitialised, Race, ..."""
    if not region.ready and (at := region.shadow.first_unwritten(where)) is not None:
        byte = int(where.reshape(-1)[at])
        warp.fail(
            Uninitialised, f"reads {region.place(byte)}, which nothing has written", lane=_lane(access, where, at),
            tensor=region.name, address=byte,
        )  # fmt: skip
    _no_words(warp, region, where, access, "reads")
    if region.late or region.changed or region.shared:
        not_ahead(warp, region, where, access, "reads")
    clocks, joined = warp.block.clocks, warp.block.clocks.joined[warp.agent_number]
    seen = clocks.seen[plane, warp.agent_number] if seen is None else seen
    if len(region.writers):  # before clocks, which are of one cluster
        _among_blocks(warp, region, where, access, "reads", wrote=region.writers, added=region.reducers)
    if (conflict := region.shadow.unseen_write(where, seen, access, joined)) is not None:
        _conflict(warp, region, where, access, conflict, "reads", plane)
    if len(region.writers):
        _by_block(region.readers, where, warp.block.number)
    region.shadow.read(where, access, joined)


def note_write(warp: Warp, region: Region, where: Bytes, access: Access, plane: int = GENERIC) -> None:
    """Checks and notes a write. Raises Race, MissingWait, ..."""
    _no_words(warp, region, where, access, "writes")
    if region.array is not None:
        not_ahead(warp, region, where, access, "writes")
    clocks, shadow = warp.block.clocks, region.shadow
    known = clocks.seen[plane, warp.agent_number], access, clocks.joined[warp.agent_number]
    if len(region.writers):  # before clocks, which are of one cluster
        by = {"wrote": region.writers, "read": region.readers, "added": region.reducers}
        _among_blocks(warp, region, where, access, "writes", **by)
    if (conflict := shadow.unseen_write(where, *known) or shadow.unseen_read(where, *known)) is not None:
        _conflict(warp, region, where, access, conflict, "writes", plane)
    if len(region.writers):
        region.writers[where] = warp.block.number
    region.shadow.write(where, access)


def not_ahead(warp: Warp, region: Region, where: Bytes, access: Access, verb: str) -> None:
    """Raises Race if the warp has yet to wait for the launch before, which may still use what it accesses."""
    if not warp.ahead:
        return
    byte = int(where.reshape(-1)[0])
    said = f"{verb} {region.place(byte)} before grid_wait: the launch before may still use it"
    warp.fail(Race, said, lane=_lane(access, where, 0), tensor=region.name, address=byte)


def _no_words(warp: Warp, region: Region, where: Bytes, access: Access, verb: str) -> None:
    """Raises Race if a byte is one of a word."""
    if (found := region.words[where].reshape(-1)).any():
        at = int(found.argmax())
        byte = int(where.reshape(-1)[at])
        said = f"{verb} {region.place(byte)}, which others access as a word: nothing orders the two"
        warp.fail(Race, said, lane=_lane(access, where, at), tensor=region.name, address=byte)


def _lane(access: Access, where: Bytes, at: int) -> int | None:
    return None if access.lanes is None else int(access.lanes[at // (where.size // len(where))])


def note_reduction(warp: Warp, region: Region, where: Bytes, access: Access) -> None:
    """Checks and notes that elements are combined with others, as other blocks may do too. Raises Race."""
    _among_blocks(warp, region, where, access, "adds to", wrote=region.writers, read=region.readers)
    _by_block(region.reducers, where, warp.block.number)


def _by_block(blocks: NDArray[np.int32], where: Bytes, number: int) -> None:
    """A block has done it to these bytes."""
    known = blocks[where]
    blocks[where] = np.where((known == NO_BLOCK) | (known == number), number, SEVERAL)


def _among_blocks(warp: Warp, region: Region, where: Bytes, access: Access, verb: str, **by: NDArray[np.int32]) -> None:
    """Raises Race if another block has done something to a byte. `by`: the blocks, by what they did."""
    for did, blocks in by.items():
        known = blocks[where]
        bad = (known != NO_BLOCK) & (known != warp.block.number)
        if not bad.any():
            continue
        at = int(bad.reshape(-1).argmax())
        byte = int(where.reshape(-1)[at])
        warp.fail(
            Race, f"{verb} {region.place(byte)}, which another block {did}: nothing orders blocks of a launch",
            lane=_lane(access, where, at), tensor=region.name, address=byte,
        )  # fmt: skip


def _conflict(
    warp: Warp, region: Region, where: Bytes, access: Access, found: Conflict, verb: str, plane: int
) -> NoReturn:
    block = warp.block
    byte = int(where.reshape(-1)[found.place])
    lane = _lane(access, where, found.place)
    did = "wrote" if found.wrote else "read"
    step = "an earlier launch" if found.step == EARLIER else block.steps[found.step]
    name = block.clocks.names[found.agent]
    said = f"{verb} {region.place(byte)}, which {step} ({name}) {did}"
    place: dict[str, Any] = {"lane": lane, "tensor": region.name, "address": byte}
    if found.lane >= 0:
        who = f"thread {warp.threads[found.lane]} of the same warp"
        warp.fail(LaneRace, f"{said} in {who}: the warp has not synchronised since", **place)
    if plane in (ASYNC, ASYNC_GLOBAL) and block.clocks.seen[GENERIC, warp.agent_number, found.agent] >= found.time:
        warp.fail(MissingFence, f"{said} without a proxy fence{' of global memory' * (plane == ASYNC_GLOBAL)}", **place)
    if found.agent >= block.clocks.warps and not block.clocks.seen_by_any(found.agent, found.time):
        doing = {"wrote": "writes", "read": "reads"}[did]
        said = f"{verb} {region.place(byte)}, which {step} ({name}) still {doing}: nothing has waited for it"
        warp.fail(MissingWait, said, **place)
    warp.fail(Race, f"{said}: no barrier orders the two", **place)


def load(
    warp: Warp, space: int, addresses: Array, width: int, *, align: int = 0, mask: Any = None
) -> NDArray[np.uint8]:
    """The bytes (32, width) that the active threads read from memory."""
    made = np.zeros((WARP, width), np.uint8)
    for region, lanes, where in parts(warp, space, addresses, width, "reads", mask, align=align):
        note_read(warp, region, where, own(warp, lanes))
        made[lanes] = region.data[where]
        if space == SMEM:
            count(warp, where[:, 0] + SHARED_BASE, lanes, width)
    return made


def store(
    warp: Warp, space: int, addresses: Array, data: NDArray[np.uint8], *, align: int = 0, mask: Any = None
) -> None:
    """The active threads write bytes (32, width)."""
    width = data.shape[1]
    for region, lanes, where in parts(warp, space, addresses, width, "writes", mask, align=align):
        _same_place(warp, region, lanes, where, data)
        note_write(warp, region, where, own(warp, lanes))
        region.data[where] = data[lanes]
        if space == SMEM:
            count(warp, where[:, 0] + SHARED_BASE, lanes, width)


def count(warp: Warp, addresses: NDArray[np.int64], lanes: NDArray[np.int64], width: int) -> None:
    """Counts the bank conflicts of an access to shared memory."""
    warp.block.conflicts.count(warp.step, addresses, lanes, width)


def _same_place(warp: Warp, region: Region, lanes: NDArray[np.int64], where: Bytes, data: NDArray[np.uint8]) -> None:
    """Raises Race if two threads write different values to one byte at once."""
    starts = where[:, 0]
    if (starts[1:] - starts[:-1] >= where.shape[1]).all():
        return
    places, first, back = np.unique(where, return_index=True, return_inverse=True)
    if len(places) == where.size:
        return
    written = data[lanes].reshape(-1)
    wrong = written != written[first[back.reshape(-1)]]
    if wrong.any():
        at = int(wrong.argmax())
        lane, byte = int(lanes[at // where.shape[1]]), int(where.reshape(-1)[at])
        other = int(warp.threads[lanes[first[back.reshape(-1)[at]] // where.shape[1]]])
        said = f"writes {region.place(byte)}, to which thread {other} writes another value at once"
        warp.fail(Race, said, lane=lane, tensor=region.name, address=byte)


def load_local(warp: Warp, addresses: Array, width: int, register: int) -> NDArray[np.uint8]:
    """The bytes (32, width) of registers that have an address. The register that gets them may have no value yet."""
    warp.pending.pop(register, None)
    if len(addresses) == 1:
        start = _inside(warp, addresses, width)
        warp.loaded[register] = start
        valid: Any = warp.valid[:, start : start + width].all(axis=1)
        for near in range(start, start + width) if warp.in_flight else ():
            if (ticket := warp.in_flight.get(near)) is not None:
                warp.pending[register] = ticket
        made = warp.local[:, start : start + width].copy()
    else:
        where = _places(warp, addresses, width)
        for ticket in warp.in_flight.values():
            warp.check_ticket(ticket)
        valid = warp.valid[warp.lanes[:, None], where].all(axis=1)
        made = warp.local[warp.lanes[:, None], where]
    if not valid[warp.active].all():
        warp.pending[register] = Ticket(NEVER, lanes=~valid)
    return made


def store_local(warp: Warp, addresses: Array, data: NDArray[np.uint8], register: int, *, computed: bool = True) -> None:
    """The active threads write bytes (32, width) of a register to registers that have an address. `computed`: the
    value is new, and not one that an instruction of a warpgroup made."""
    width = data.shape[1]
    ticket = warp.pending.get(register)
    valid = np.ones(WARP, np.bool_)
    if ticket is not None and ticket.lanes is not None:
        valid = ~ticket.lanes
        ticket = None
    if len(addresses) == 1:
        start = _inside(warp, addresses, width)
        warp.in_flight.pop(start, None)
        if ticket is not None:
            warp.in_flight[start] = ticket
        elif computed:
            warp.unfenced.add(start)
        if warp.whole:
            warp.local[:, start : start + width] = data
            warp.valid[:, start : start + width] = valid[:, None]
        else:
            warp.local[warp.active, start : start + width] = data[warp.active]
            warp.valid[warp.active, start : start + width] = valid[warp.active, None]
        return
    lanes = np.flatnonzero(warp.active)
    where = _places(warp, addresses, width)[lanes]
    warp.local[lanes[:, None], where] = data[lanes]
    warp.valid[lanes[:, None], where] = valid[lanes, None]


def _inside(warp: Warp, addresses: Array, width: int) -> int:
    """The first byte of registers at an address that all threads have. Raises OutOfBounds."""
    start = int(addresses[0]) - LOCAL_BASE
    if not 0 <= start <= warp.local.shape[1] - width or start in warp.gaps or start + width - 1 in warp.gaps:
        warp.fail(OutOfBounds, BEYOND)
    return start


def _places(warp: Warp, addresses: Array, width: int) -> NDArray[np.int64]:
    """The bytes (32, width) of registers, each thread at its own address. Raises OutOfBounds."""
    where = addresses[:, None] - LOCAL_BASE + np.arange(width)
    wrong = (where < 0) | (where >= warp.local.shape[1]) | np.isin(where, list(warp.gaps))
    if (bad := wrong.any(axis=1) & warp.active).any():
        warp.fail(OutOfBounds, BEYOND, lane=int(bad.argmax()))
    return np.where(wrong, 0, where)
