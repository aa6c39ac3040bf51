"""Races: accesses of one launch to the same bytes that nothing orders.

While blocks run, every access is only recorded (log.py). After the launch, `races` examines the allocations that
were written. It replays the accesses in program order on a map that holds, for every cell, the last access that wrote
it and the last that read it. Two accesses to a cell, at least one of them a write, conflict unless

- both are atomic (or relaxed/acquire/release) with scopes that span both blocks, or
- in one block: a token leads from the first to the second, or the second depends on the first's result, or
- in two blocks: the second comes after an acquire that read what a release after the first has written (log.py).

Program order alone orders nothing. Two writes conflict even if they write the same value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..numbers.elements import Array
from .log import BLOCK, Access, spans
from .memory import AddressSpace
from .views import Window


@dataclass(frozen=True)
class Race:
    first: Access
    second: Access
    offset: int


Depends = Callable[[Access, Access], bool]


class Strided(NamedTuple):
    """Cells with gaps: sizes, strides and the first cell."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int


Place = slice | Array | Strided


def races(accesses: Sequence[Access], space: AddressSpace, depends: Depends) -> Race | None:
    """The first conflict found, or None. `depends(p, c)`: True if c's operation depends on a result of p's."""
    by_number: dict[int, list[int]] = {}
    written: set[int] = set()
    for n, access in enumerate(accesses):
        by_number.setdefault(access.number, []).append(n)
        if access.mode.writes:  # `access.writes` takes longer, here and below
            written.add(access.number)
    for number in sorted(written):
        found = _Map(accesses, space[number].nbytes, by_number[number], depends).paint()
        if found is not None:
            return found
    return None


class _Map:
    """The shadow of one allocation. For each cell it holds the access number, plus one, of the last writer and of the
    last reader. If atomics, which need no order among themselves, and plain accesses meet in the allocation, it also
    holds the last writer in another block."""

    def __init__(self, accesses: Sequence[Access], nbytes: int, numbers: list[int], depends: Depends) -> None:
        self.accesses, self.numbers, self.depends = accesses, numbers, depends
        self.grain = math.gcd(*(accesses[n].itemsize for n in numbers))
        cells = -(-nbytes // self.grain)
        self.writer = np.zeros(cells, np.int32)
        mixed = any(accesses[n].reads and not accesses[n].writes for n in numbers)
        self.reader = np.zeros(cells, np.int32) if mixed else None
        hides = any(accesses[n].scope > BLOCK for n in numbers) and not all(accesses[n].scope > BLOCK for n in numbers)
        self.other = np.zeros(cells, np.int32) if hides else None
        self.blocks = np.array([-1, *(access.block for access in accesses)] if hides else ())
        self._windows: dict[tuple[int, tuple[int, ...]], Place] = {}

    def paint(self) -> Race | None:
        for n in self.numbers:
            access = self.accesses[n]
            place, writes = self._place(access), access.mode.writes
            found = self._against_writers(n, place)
            if found is None and writes and self.reader is not None:
                found = self._against(self.reader, n, place)
            if found is not None:
                return found
            if writes:
                self._hide(access, place)
                _assign(self.writer, place, n + 1)
            elif self.reader is not None:
                _assign(self.reader, place, n + 1)
        if self.reader is None:
            return None
        # Only the last reader of a cell was kept, so a write may not have met an earlier reader: check all reads again.
        for n in self.numbers:
            if not self.accesses[n].writes:
                found = self._against_writers(n, self._place(self.accesses[n]))
                if found is not None:
                    return found
        return None

    def _hide(self, access: Access, place: Place) -> None:
        """The last writers in blocks other than the one that writes now."""
        if self.other is not None:
            last = _at(self.writer, place)
            foreign = (last > 0) & (self.blocks[last] != access.block)
            _assign(self.other, place, np.where(foreign, last, _at(self.other, place)))

    def _against_writers(self, n: int, place: Place) -> Race | None:
        found = self._against(self.writer, n, place)
        return self._against(self.other, n, place) if found is None and self.other is not None else found

    def _against(self, cells: Array, n: int, place: Place) -> Race | None:
        for other in _seen(_at(cells, place)):
            if other == n + 1:
                continue
            first, second = self.accesses[min(other - 1, n)], self.accesses[max(other - 1, n)]
            if not ordered(first, second, self.depends):
                return Race(first, second, self._offset(cells, place, other))
        return None

    def _offset(self, cells: Array, place: Place, other: int) -> int:
        """The first byte of the allocation that both touch."""
        touched = np.zeros(len(cells), np.bool_)
        _assign(touched, place, True)
        return int(np.flatnonzero(touched & (cells == other))[0]) * self.grain

    def _place(self, access: Access) -> Place:
        """The cells that an access touches."""
        where, wide = access.where, access.itemsize // self.grain
        if access.view is not None:
            assert isinstance(where, tuple)
            key = id(access.view), where  # the accesses keep the views
            if key not in self._windows:
                self._windows[key] = self._window(access.view.window(where), wide)
            return self._windows[key]
        if isinstance(where, range):  # without gaps
            return slice(where.start // self.grain, where.start // self.grain + len(where) * wide)
        offsets = np.asarray(where) // self.grain
        return offsets if wide == 1 else (offsets[:, None] + np.arange(wide)).reshape(-1)

    def _window(self, window: Window, wide: int) -> Place:
        """A window in cells, each element `wide` of them. As a slice, which takes less time, if it has no gaps."""
        start = window.offset // self.grain
        strides = [stride // self.grain for stride in window.strides]
        size = wide
        for n, stride in zip(window.shape[::-1], strides[::-1], strict=True):
            if n != 1 and stride != size:
                return Strided((*window.shape, wide), (*strides, 1), start)
            size *= n
        return slice(start, start + size)


def _at(cells: Array, place: Place) -> Array:
    """The cells of a place, as a view unless the place is an array."""
    if not isinstance(place, Strided):
        return cells[place]
    if 0 in place.shape:
        return np.empty(0, cells.dtype)
    strides = tuple(stride * cells.itemsize for stride in place.strides)
    return np.ndarray(place.shape, cells.dtype, cells, place.start * cells.itemsize, strides)


def _assign(cells: Array, place: Place, value: int | Array) -> None:
    if isinstance(place, Strided):
        _at(cells, place)[...] = value
    else:
        cells[place] = value


def _seen(part: Array) -> Iterable[int]:
    """The numbers in some cells, without 0."""
    if not part.size:
        return ()
    high = int(np.maximum.reduce(part, axis=None))
    if not high:  # as of most cells, which nothing has touched yet
        return ()
    if int(np.minimum.reduce(part, axis=None)) == high:
        return (high,)
    return (int(n) for n in np.unique(part) if n)


def ordered(first: Access, second: Access, depends: Depends) -> bool:
    """True if something orders two accesses to the same bytes. `first` is the earlier one in program order."""
    one, other = first.mode, second.mode
    if not (one.writes or other.writes):
        return True
    if first.block == second.block:
        if one.scope and other.scope:
            return True
        if (second.token >> first.local) & 1:
            return True
        return one.reads and other.writes and depends(first, second)
    if spans(first, second):
        return True
    return bool(second.after.get(first.block, 0) >> first.local & 1)
