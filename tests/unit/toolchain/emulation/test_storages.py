"""A launch's memory, by the program's addresses."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.emulation.storages import Storages
from toolchain.tileir.interpreter import AddressSpace, Storage


def storage(array: np.ndarray, start: int = 0, stop: int | None = None) -> Storage:
    part = array[start:stop]
    return Storage(part.ctypes.data, part.nbytes, part)


def test_storages_that_overlap_are_one_allocation_and_others_are_not() -> None:
    array, other = np.zeros(64, np.float32), np.zeros(8)
    storages = Storages()
    for each in (storage(array, 0, 40), storage(array, 16), storage(other)):
        storages.note(each)
    placed = storages.placed()
    assert sorted(each.memory.nbytes for each in placed) == [64, 256]
    space = AddressSpace(placed)
    first, last = space.pointer_at(array.ctypes.data), space.pointer_at(array[63:].ctypes.data)
    assert first is not None and last is not None and first.memory is last.memory and last.offset_bytes == 252
    storages.clear()
    assert storages.placed() == []


def test_a_kernel_sees_the_memory_itself_from_a_multiple_of_16_bytes_on() -> None:
    array = np.arange(64, dtype=np.uint8)
    start = -array.ctypes.data % 16 + 4
    storages = Storages()
    storages.note(storage(array, start))
    (placed,) = storages.placed()
    assert placed.address == array[start:].ctypes.data - 4
    placed.memory.bytes[4] = 99
    assert array[start] == 99


def test_memory_that_cannot_be_written_stays_so() -> None:
    array = np.zeros(16, np.uint8)
    storages = Storages()
    storages.note(Storage(array.ctypes.data, 16, array, writeable=False))
    with pytest.raises(ValueError, match="read-only"):
        storages.placed()[0].memory.bytes[0] = 1


def test_addresses_are_translated_both_ways_and_unknown_ones_stay() -> None:
    array = np.zeros(4)
    storages = Storages()
    storages.note(storage(array))
    space = AddressSpace(storages.placed())
    known = array.ctypes.data + 8
    ours = space.from_program(known)
    assert ours != known and space.to_program(ours) == known
    assert space.from_program(5) == 5
    both = space.from_program(np.array([[known, 5]]))
    assert both.tolist() == [[ours, 5]] and space.to_program(both).tolist() == [[known, 5]]
