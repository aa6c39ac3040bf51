"""What atomic loads see: the newest value of a place, or an older one that nothing has replaced before."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.tileir.interpreter import Allocation, Pointer
from toolchain.tileir.interpreter.memory.memory import AddressSpace
from toolchain.tileir.interpreter.memory.old_values import OldValues

WRITER, READER = 0, 1
NEW = {(0, 3): {WRITER: 1}}  # what a release publishes


class Place:
    """One i32, which block 0 writes and block 1 reads."""

    def __init__(self) -> None:
        self.array = np.array([5], np.int32)
        space = AddressSpace()
        self.place = space.number(space.address(Pointer(Allocation(self.array)))), 0, 4
        self.changes = self.number = 0
        self.old = OldValues(space, self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def write(self, value: int, block: int = WRITER) -> None:
        self.old.write(self.number, block, self.number, self.place, NEW if self.number else {})
        self.number += 1
        self.array[0] = value

    def read(self, site: int = 0, after: dict[int, int] | None = None, block: int = READER) -> int:
        self.old.read(self.number, block, site, after or {}, self.place, NEW)
        seen = int(self.array[0])
        self.old.renew()
        return seen


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_load_sees_the_oldest_value_once(place: Place) -> None:
    place.write(6)
    place.write(7)
    assert [place.read(), place.read()] == [5, 7]
    assert place.array[0] == 7 and place.changes == 1
    (seen,) = place.old.seen
    assert (seen.write, seen.old, seen.new) == (0, 5, 7)


def test_a_load_sees_what_comes_before_it(place: Place) -> None:
    place.write(6)
    place.write(7)
    assert place.read(after={WRITER: 0b01}) == 6
    assert place.read(site=1, after={WRITER: 0b11}) == 7


def test_a_block_sees_no_older_value_than_it_has_seen(place: Place) -> None:
    place.write(6)
    assert place.read(after={WRITER: 1}) == 6
    place.write(7)
    assert place.read(site=1) == 6


def test_a_block_sees_what_it_has_written(place: Place) -> None:
    place.write(6)
    place.write(7, READER)
    assert place.read() == 7


def test_an_old_value_publishes_what_it_did(place: Place) -> None:
    place.write(6)
    assert place.old.read(1, READER, 0, {}, place.place, NEW) == {}
    place.old.renew()
    assert place.old.read(1, READER, 0, {}, place.place, NEW) == NEW
