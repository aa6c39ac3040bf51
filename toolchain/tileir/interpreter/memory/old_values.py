"""Old values that a load may see: those that a write has replaced which nothing orders before the load.

A load that is `weak` races with such a write (shadow.py), whatever it sees. An atomic one may see either value. So a
launch of blocks that wait is run once more, in which each such load of a block sees, the first time at each place, the
oldest value that it may; the next time the newest, as no write stays unseen for ever. A load that a block's own wait
stands for sees them too. An update reads what was there last, always.

A block never sees an older value than it has seen before in the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..numbers.elements import Array
from .memory import AddressSpace

Clock = Mapping[int, int]
Published = Mapping[tuple[int, int], Clock]  # what the value in a place publishes (log.py)
_Place = tuple[int, int, int]  # allocation, byte offset, size of an element


class Write(NamedTuple):
    """An atomic write of one element. `number`: of the access in the log; `before` and `published`: the bytes that it
    replaces, and what they published."""

    number: int
    block: int
    local: int
    before: Array
    published: Published


@dataclass(frozen=True)
class Seen:
    """A load, by its number in the log, that saw the value that `write` replaces, at a byte of an allocation."""

    read: int
    write: int
    offset: int
    old: int
    new: int


class OldValues:
    """The atomic writes of a launch, and what its loads have seen. `changed` is called when a load sees an old value:
    the next time it may see another."""

    def __init__(self, space: AddressSpace, changed: Callable[[], None]) -> None:
        self.seen: list[Seen] = []
        self._space, self._changed = space, changed
        self._writes: dict[_Place, list[Write]] = {}
        self._read: dict[tuple[int, _Place], int] = {}  # by block, how many of a place's writes it knows
        self._given: set[tuple[int, int, _Place]] = set()  # by block and site, where it has seen an old value
        self._newest: list[tuple[Array, Array]] = []

    def write(self, number: int, block: int, local: int, place: _Place, published: Published) -> None:
        """An atomic write is about to happen. What the block reads there later is not older."""
        writes = self._writes.setdefault(place, [])
        writes.append(Write(number, block, local, self._bytes(place).copy(), published))
        self._read[block, place] = len(writes)

    def read(
        self, number: int, block: int, site: int, after: Clock, place: _Place, published: Published
    ) -> Published:  # fmt: skip
        """An atomic load is about to happen, after what `after` holds. Puts the value that it sees into memory, until
        `renew`. Returns what this value publishes."""
        writes = self._writes.get(place, ())
        first = self._first_unordered(writes, block, after, place)
        key = block, site, place
        if first == len(writes) or key in self._given:
            self._read[block, place] = len(writes)
            return published
        self._given.add(key)
        self._read[block, place] = first
        held, write = self._bytes(place), writes[first]
        self.seen.append(Seen(number, write.number, place[1], _value(write.before), _value(held)))
        self._newest.append((held, held.copy()))
        held[...] = write.before
        self._changed()
        return write.published

    def _first_unordered(self, writes: Sequence[Write], block: int, after: Clock, place: _Place) -> int:
        """The first of the newest writes of a place that a load need not see."""
        first = len(writes)
        known = self._read.get((block, place), 0)
        while first > known and not after.get(writes[first - 1].block, 0) >> writes[first - 1].local & 1:
            first -= 1
        return first

    def renew(self) -> None:
        """A load is done: memory holds the newest values again."""
        for held, newest in self._newest:
            held[...] = newest
        self._newest.clear()

    def _bytes(self, place: _Place) -> Array:
        number, offset, itemsize = place
        return self._space[number].bytes[offset : offset + itemsize]


def _value(held: Any) -> int:
    return int.from_bytes(held.tobytes(), "little", signed=True)
