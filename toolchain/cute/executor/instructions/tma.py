"""TMA: boxes of an array to shared memory, counted by an mbarrier, and back.

A load writes at once, at the time when the mbarrier's phase ends: a thread may read the bytes when it has waited for
that.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....contract.im2col import Im2colDescriptor
from ....contract.tma import TMADescriptor
from ..state.access import GMEM, SMEM, note_read, note_reduction, note_write, parts
from ..state.block import WARP, Block, Mbarrier, Warp
from ..state.call import Call
from ..state.clocks import ASYNC, ASYNC_GLOBAL
from ..state.findings import Finding, Misaligned, NoSemantics, OutOfBounds
from ..state.memory import SHARED_BASE, Region
from ..state.shadow import Access, Bytes
from . import im2col
from .barriers import complete, mbarrier
from .cluster import masked
from .wgmma import SWIZZLES, swizzled

ALIGN = 128  # of a box in shared memory
BULK = 16  # of bytes that lie side by side, on both sides
READS, WRITES = "TMA stores", "TMA writes"  # the agents of a warp's stores, for their source and for their target
REDUCTIONS: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
                              "or": np.bitwise_or, "xor": np.bitwise_xor}  # fmt: skip


@dataclass(frozen=True)
class Map:
    """A tensor map at run time: the array's memory, and the descriptor that describes it."""

    region: Region
    descriptor: TMADescriptor | Im2colDescriptor


Elements = tuple[NDArray[np.int64], NDArray[np.bool_]]  # their offsets in bytes in the array, and if they lie inside


def _elements(call: Call, warp: Warp, first: int, lane: int, *, images: bool) -> tuple[Elements, int]:
    """The elements of the box at a copy's coordinates, and how many lie side by side."""
    of: Map = warp.env[call.ins[1]]
    said, size = of.descriptor, of.region.array.itemsize if of.region.array is not None else 1
    numbers = [int(call.arg(warp, first + i)[lane]) for i in range(len(call.ins) - first)]
    if images != isinstance(said, Im2colDescriptor):
        kinds = ("images", "tiles") if images else ("tiles", "images")
        warp.fail(Finding, "a copy of {} by a tensor map of {}".format(*kinds), lane=lane)
    if isinstance(said, Im2colDescriptor):
        where, offsets = numbers[: len(numbers) // 2 + 1], numbers[len(numbers) // 2 + 1 :]
        if why := im2col.refused(said, where, offsets):
            warp.fail(Finding, why, lane=lane)
        return im2col.columns(said, where, offsets, size), said.channels
    if len(numbers) != len(said.sizes):
        warp.fail(Finding, f"{len(numbers)} coordinates for a tensor map of rank {len(said.sizes)}", lane=lane)
    strides = (size, *said.strides)
    offset, inside = np.zeros((), np.int64), np.ones((), np.bool_)
    for start, box, extent, stride in reversed(list(zip(numbers, said.box, said.sizes, strides, strict=True))):
        at = start + np.arange(box)
        offset, inside = offset[..., None] + at * stride, inside[..., None] & (at >= 0) & (at < extent)
    return (offset, inside), said.box[0]


def _box(
    call: Call, warp: Warp, first: int, lane: int, *, images: bool = False
) -> tuple[Map, Bytes, Bytes, NDArray[np.bool_]]:
    """The map, and for each byte of the box its place in shared memory, in the array, and whether it lies inside."""
    of: Map = warp.env[call.ins[1]]
    said, address = of.descriptor, int(call.arg(warp, 0)[lane])
    size = of.region.array.itemsize if of.region.array is not None else 1
    (offset, inside), width = _elements(call, warp, first, lane, images=images)
    bytes_ = (offset.reshape(-1, 1) + np.arange(size)).reshape(-1)
    held = np.repeat(inside.reshape(-1), size)
    row = width * size
    pitch = said.swizzle if said.swizzle else row  # a narrower box keeps the swizzle's rows
    shared = address + (np.arange(len(bytes_) // row)[:, None] * pitch + np.arange(row)).reshape(-1)
    align = 8 * said.swizzle if said.swizzle else ALIGN
    if address % align:
        place = warp.block.shared.place(address - SHARED_BASE)
        warp.fail(Misaligned, f"a box at {place}, an address that is no multiple of {align}", lane=lane)
    if said.swizzle:
        shared = swizzled(shared, SWIZZLES[said.swizzle])
    shared = shared - SHARED_BASE
    memory = warp.block.shared
    if shared.min() < 0 or shared.max() >= len(memory.data):
        warp.fail(OutOfBounds, f"a box of {len(shared)} bytes reaches beyond shared memory", lane=lane,
                  tensor=memory.name, address=address - SHARED_BASE)  # fmt: skip
    return of, shared, bytes_, held


def _fill(said: TMADescriptor | Im2colDescriptor, array: NDArray[Any], count: int) -> NDArray[np.uint8]:
    value = np.nan if said.fill == "nan" else 0
    return np.full(count // array.itemsize, value).astype(array.dtype).view(np.uint8)


def tma_load_multicast(call: Call, warp: Warp) -> None:
    """As `tma_load` with a mask before the coordinates: the bytes and their count come to the same places in each block
    of the cluster whose bit is set."""
    _load(call, warp, 4, masked(call, warp, 3))


def tma_load(call: Call, warp: Warp) -> None:
    """Destination, tensor map, mbarrier, coordinates. Elements outside of the array become zero, or NaN."""
    _load(call, warp, 3, [warp.block])


def tma_load_im2col(call: Call, warp: Warp) -> None:
    """As `tma_load` of pixels, with an offset of each spatial dimension behind the coordinates."""
    _load(call, warp, 3, [warp.block], images=True)


def _load(call: Call, warp: Warp, first: int, blocks: list[Block], *, images: bool = False) -> None:
    for lane, block in itertools.product(np.flatnonzero(warp.active), blocks):
        of, shared, bytes_, inside = _box(call, warp, first, int(lane), images=images)
        one = mbarrier(warp, int(call.arg(warp, 2)[lane]), block, by_tma=True)
        assert of.region.array is not None
        data = _fill(of.descriptor, of.region.array, len(shared))
        if inside.any():
            note_read(warp, of.region, bytes_[inside], Access(one.agent, one.phase + 1, warp.pc), ASYNC_GLOBAL)
        data[inside] = of.region.data[bytes_[inside]]
        _arrive(warp, block, one, shared, data, int(lane))


def _arrive(warp: Warp, block: Block, one: Mbarrier, shared: Bytes, data: NDArray[np.uint8], lane: int) -> None:
    """Bytes that a lane sends for come to a block's shared memory, and its mbarrier counts them."""
    memory = block.shared
    block.reach(warp, one.agent, one.phase + 1)
    note_write(warp, memory, shared[None], Access(one.agent, one.phase + 1, warp.pc, np.array([lane])))
    memory.data[shared] = data
    one.tx -= len(shared)
    complete(one)


def bulk_load(call: Call, warp: Warp) -> None:
    """Destination, source, mbarrier: `n` bytes that lie side by side."""
    data = np.zeros((WARP, call.number), np.uint8)
    bars = {
        int(lane): mbarrier(warp, int(call.arg(warp, 2)[lane]), by_tma=True) for lane in np.flatnonzero(warp.active)
    }
    for region, lanes, where in parts(warp, GMEM, call.arg(warp, 1), call.number, "copies", align=BULK):
        for lane, bytes_ in zip(lanes, where, strict=True):
            one = bars[lane]
            note_read(warp, region, bytes_, Access(one.agent, one.phase + 1, warp.pc), ASYNC_GLOBAL)
        data[lanes] = region.data[where]
    for _, lanes, where in parts(warp, SMEM, call.arg(warp, 0), call.number, "copies to", align=BULK):
        for lane, shared in zip(lanes, where, strict=True):
            _arrive(warp, warp.block, bars[lane], shared, data[lane], int(lane))


def _stores(warp: Warp) -> tuple[Access, Access]:
    """The reads and the writes of a store."""
    reads, writes = (Access(warp.agent(name), warp.stores + 1, warp.pc) for name in (READS, WRITES))
    warp.last_store = reads
    return reads, writes


def bulk_store(call: Call, warp: Warp) -> None:
    """Source, destination: `n` bytes that lie side by side."""
    reads, writes = _stores(warp)
    data = np.zeros((WARP, call.number), np.uint8)
    for region, lanes, where in parts(warp, SMEM, call.arg(warp, 0), call.number, "copies", align=BULK):
        note_read(warp, region, where, replace(reads, lanes=lanes), ASYNC)
        data[lanes] = region.data[where]
    for region, lanes, where in parts(warp, GMEM, call.arg(warp, 1), call.number, "copies to", align=BULK):
        note_write(warp, region, where, writes)
        region.data[where] = data[lanes]


def tma_reduce(call: Call, warp: Warp) -> None:
    """As `tma_store`, and each element is combined with the array's: one block's after another's, in any order."""
    if call.atom not in REDUCTIONS:
        raise NoSemantics(f"the executor has no reduction {call.atom}")
    access, _ = _stores(warp)
    for lane in np.flatnonzero(warp.active):
        of, shared, bytes_, inside = _box(call, warp, 2, int(lane))
        note_read(warp, warp.block.shared, shared[None], replace(access, lanes=np.array([lane])), ASYNC)
        assert of.region.array is not None
        dtype, there = of.region.array.dtype, bytes_[inside]
        values = (data[where].view(dtype) for data, where in (
            (of.region.data, there), (warp.block.shared.data, shared[inside])
        ))  # fmt: skip
        of.region.data[there] = REDUCTIONS[call.atom](*values).astype(dtype).view(np.uint8)
        note_reduction(warp, of.region, there, access)


def tma_store(call: Call, warp: Warp) -> None:
    """Source, tensor map, coordinates. Elements outside of the array are not written."""
    reads, writes = _stores(warp)
    for lane in np.flatnonzero(warp.active):
        of, shared, bytes_, inside = _box(call, warp, 2, int(lane))
        note_read(warp, warp.block.shared, shared[None], replace(reads, lanes=np.array([lane])), ASYNC)
        if inside.any():
            note_write(warp, of.region, bytes_[inside], writes)
            of.region.data[bytes_[inside]] = warp.block.shared.data[shared[inside]]


def bulk_commit_group(_: Call, warp: Warp) -> None:
    """The stores so far become a group."""
    warp.stores += 1


def bulk_wait_group(call: Call, warp: Warp) -> None:
    """All but the latest groups have read their source."""
    warp.block.clocks.complete(warp.agent_number, warp.agent(READS), max(warp.stores - call.number, 0))


def bulk_wait_group_all(call: Call, warp: Warp) -> None:
    """All but the latest groups have read their source and written their target."""
    bulk_wait_group(call, warp)
    warp.block.clocks.complete(warp.agent_number, warp.agent(WRITES), max(warp.stores - call.number, 0))
