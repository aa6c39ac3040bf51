"""The memories of a launch: arrays in global memory, and the shared memory of a block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clocks import History
from .shadow import Shadow

SHARED_BASE = 1024  # the first address of shared memory: a null pointer points to none
GLOBAL_BASE = 1 << 32
GAP = 4096  # unused addresses between arrays, so that an access beyond one meets no other
NO_BLOCK, SEVERAL = -1, -2
LEAST_GAP = 16  # bytes between rows


@dataclass
class Region:
    """Bytes at consecutive addresses. `inside`: those that belong to the tensor, or None for all. `ready`: they are
    written before the launch. `pitches`: the bytes of a step along each dimension of the array. `parts`: what shared
    memory holds, by first byte. `writers`, `readers`, `reducers`: the last blocks at each byte, or
    SEVERAL. `words`: the bytes that this launch uses as words. `shared`: among ranks; `changed`: by an earlier launch;
    `late`: the launch before may write to it.
    `flags`: the counts that began at a byte, in their order, and what those know who have seen one."""

    name: str
    base: int
    data: NDArray[np.uint8]
    shadow: Shadow
    ready: bool
    inside: NDArray[np.bool_] | None = None
    array: NDArray[Any] | None = None
    pitches: tuple[int, ...] = ()
    parts: Sequence[tuple[int, int, str]] = ()
    writers: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    readers: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    reducers: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    words: NDArray[np.bool_] = field(init=False)
    shared: bool = False
    late: bool = False
    changed: bool = False
    flags: dict[int, History] = field(default_factory=dict[int, History])

    def __post_init__(self) -> None:
        self.words = np.zeros(len(self.data), np.bool_)

    def place(self, offset: int) -> str:
        """A byte by name: the element of an array, or the tensor in shared memory and the byte in it."""
        if self.array is not None:
            where, rest = list[int](), offset
            for pitch in self.pitches:
                where.append(rest // pitch)
                rest %= pitch
            return f"{self.name}[{', '.join(map(str, where))}]"
        for start, size, name in self.parts:
            if start <= offset < start + size:
                return f"byte {offset - start} of {name}"
        return f"byte {offset} of {self.name}"

    def new_block(self) -> None:
        """No thread of the next block has touched it."""
        self.shadow.clear()

    @property
    def is_changed(self) -> bool:
        """True if a launch has written to it."""
        blocks = (self.writers, self.reducers)
        return self.changed or self.shared or bool(self.words.any()) or any((by != NO_BLOCK).any() for by in blocks)

    def new_launch(self) -> None:
        """Nor one of the next launch, which begins when this one has ended; memory of several ranks outlives both."""
        self.changed = self.is_changed
        self.words.fill(False)
        if self.shared:
            self.shadow.age()
        else:
            self.new_block()
            for blocks in (self.writers, self.readers, self.reducers):
                blocks.fill(NO_BLOCK)


def _pitches(array: NDArray[Any], unit: int) -> tuple[int, ...]:
    """The strides in bytes of a copy of an array. With a unit, rows are further apart than they are long, by a multiple
    of it: what is read beyond a row is not the next one."""
    pitches = [array.itemsize]
    for size in reversed(array.shape[1:]):
        dense = pitches[-1] * size
        spaced = unit and len(pitches) == 1
        pitches.append(math.ceil((dense + LEAST_GAP) / unit) * unit if spaced else dense)
    return tuple(reversed(pitches))


class GlobalMemory:
    """The arrays of a launch, each between unused addresses."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.bases: NDArray[np.int64] = np.zeros(0, np.int64)

    def add(self, name: str, array: NDArray[Any], *, align: int, unit: int) -> Region:
        """A copy of an array at an address that is a multiple of `align` bytes and of nothing more."""
        pitches = _pitches(array, unit)
        length = array.shape[0] * pitches[0]
        last = self.regions[-1] if self.regions else None
        end = last.base + len(last.data) if last else GLOBAL_BASE
        base = math.ceil((end + GAP) / (2 * max(align, GAP))) * 2 * max(align, GAP) + align
        data, inside = np.zeros(length, np.uint8), np.zeros(length, np.bool_)
        made = Region(name, base, data, Shadow(length), True, inside, array, pitches)
        view(made, inside.view(np.uint8), np.dtype(np.uint8), array.itemsize)[...] = 1
        made.inside = None if bool(inside.all()) else inside
        made.writers, made.readers, made.reducers = (np.full(length, NO_BLOCK, np.int32) for _ in range(3))
        if array.size:
            elements(made)[...] = array
        self.regions.append(made)
        self.bases = np.array([region.base for region in self.regions], np.int64)
        return made

    def share(self, region: Region) -> None:
        """Several ranks write to it, ordered by flags: what the clocks say of blocks holds for them."""
        if region.shared:
            return
        region.shared = True
        region.writers = region.readers = region.reducers = np.zeros(0, np.int32)

    def write_back(self) -> None:
        """The arrays get what the launch has written."""
        for region in self.regions:
            if region.array is not None and region.array.size and region.is_changed:
                region.array[...] = elements(region)


def elements(region: Region) -> NDArray[Any]:
    """The copy of an array in memory."""
    assert region.array is not None
    return view(region, region.data, region.array.dtype)


def view(region: Region, data: NDArray[np.uint8], dtype: np.dtype[Any], inner: int = 0) -> NDArray[Any]:
    """Bytes of a region as its array; with `inner`, so many bytes of each element as a last dimension."""
    assert region.array is not None
    shape = (*region.array.shape, *[inner] * bool(inner))
    strides = (*region.pitches, *[1] * bool(inner))
    return np.ndarray(shape, dtype, data.data, 0, strides)
