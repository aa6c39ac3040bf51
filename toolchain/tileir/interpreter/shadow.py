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

import numpy as np

from .elements import Array
from .log import BLOCK, Access, spans
from .memory import AddressSpace
from .views import Window


@dataclass(frozen=True)
class Race:
    first: Access
    second: Access
    offset: int


Depends = Callable[[Access, Access], bool]


def races(accesses: Sequence[Access], space: AddressSpace, depends: Depends) -> Race | None:
    """The first conflict found, or None. `depends(p, c)`: True if c's operation depends on a result of p's."""
    by_number: dict[int, list[int]] = {}
    written: set[int] = set()
    for n, access in enumerate(accesses):
        by_number.setdefault(access.number, []).append(n)
        if access.writes:
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

    def paint(self) -> Race | None:
        for n in self.numbers:
            access = self.accesses[n]
            found = self._against_writers(access, n)
            if found is None and access.writes and self.reader is not None:
                found = self._against(self.reader, access, n)
            if found is not None:
                return found
            if access.writes:
                self._hide(access)
                self._assign(self.writer, access, n + 1)
            elif self.reader is not None:
                self._assign(self.reader, access, n + 1)
        if self.reader is None:
            return None
        # Only the last reader of a cell was kept, so a write may not have met an earlier reader: check all reads again.
        for n in self.numbers:
            access = self.accesses[n]
            if not access.writes:
                found = self._against_writers(access, n)
                if found is not None:
                    return found
        return None

    def _hide(self, access: Access) -> None:
        """The last writers in blocks other than the one that writes now."""
        if self.other is not None:
            last = self._view(self.writer, access)
            foreign = (last > 0) & (self.blocks[last] != access.block)
            self._assign(self.other, access, np.where(foreign, last, self._view(self.other, access)))

    def _against_writers(self, access: Access, n: int) -> Race | None:
        found = self._against(self.writer, access, n)
        return self._against(self.other, access, n) if found is None and self.other is not None else found

    def _against(self, cells: Array, access: Access, n: int) -> Race | None:
        for other in self._seen(cells, access):
            if other == n + 1:
                continue
            first, second = self.accesses[min(other - 1, n)], self.accesses[max(other - 1, n)]
            if not ordered(first, second, self.depends):
                return Race(first, second, self._offset(cells, access, other))
        return None

    def _seen(self, cells: Array, access: Access) -> Iterable[int]:
        part = self._view(cells, access)
        if not part.size:
            return ()
        low, high = int(part.min()), int(part.max())
        if low == high:
            return (low,) if low else ()
        return (int(n) for n in np.unique(part) if n)

    def _offset(self, cells: Array, access: Access, other: int) -> int:
        """The first byte of the allocation that both touch."""
        touched = np.zeros(len(cells), np.bool_)
        self._assign(touched, access, True)
        return int(np.flatnonzero(touched & (cells == other))[0]) * self.grain

    def _view(self, cells: Array, access: Access) -> Array:
        if access.view is None:
            return cells[self._index(access)]
        shape, strides, offset = self._strided(access, cells.itemsize)
        return np.ndarray(shape, cells.dtype, cells, offset, strides) if math.prod(shape) else np.empty(0, cells.dtype)

    def _assign(self, cells: Array, access: Access, value: int | Array) -> None:
        if access.view is None:
            cells[self._index(access)] = value
        else:
            self._view(cells, access)[...] = value

    def _index(self, access: Access) -> Array | slice:
        where, wide = access.where, access.itemsize // self.grain
        if isinstance(where, range):  # without gaps
            return slice(where.start // self.grain, where.start // self.grain + len(where) * wide)
        offsets = np.asarray(where) // self.grain
        return offsets if wide == 1 else (offsets[:, None] + np.arange(wide)).reshape(-1)

    def _strided(self, access: Access, size: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        assert access.view is not None and isinstance(access.where, tuple)
        window: Window = access.view.window(access.where)
        wide = access.itemsize // self.grain
        shape = (*window.shape, wide)
        strides = (*(s // self.grain * size for s in window.strides), size)
        return shape, strides, window.offset // self.grain * size


def ordered(first: Access, second: Access, depends: Depends) -> bool:
    """True if something orders two accesses to the same bytes. `first` is the earlier one in program order."""
    if not (first.writes or second.writes):
        return True
    if first.block == second.block:
        if first.scope and second.scope:
            return True
        if (second.token >> first.local) & 1:
            return True
        return first.reads and second.writes and depends(first, second)
    if spans(first, second):
        return True
    return bool(second.after.get(first.block, 0) >> first.local & 1)
