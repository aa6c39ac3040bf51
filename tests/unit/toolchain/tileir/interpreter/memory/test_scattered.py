"""Tiles of pointers: those that follow each other, and all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.tileir.interpreter import AddressSpace, Allocation, Pointer
from toolchain.tileir.interpreter.memory.memory import Trap
from toolchain.tileir.interpreter.memory.scattered import Cells, contested, load, read_modify_write, store
from toolchain.tileir.interpreter.numbers.elements import ELEMENTS

F32 = ELEMENTS["f32"]


def cells(memory: np.ndarray, places: list[int], mask: Any = None, *, start: int = 0) -> Cells:
    """The cells of these places of `memory`, from byte `start` on."""
    space = AddressSpace()
    base = space.address(Pointer(Allocation(memory))) + start
    return Cells(space, base + 4 * np.array(places), mask, F32, (len(places),))


@pytest.mark.parametrize(
    ("places", "follow"),
    [([2, 3, 4, 5], True), ([2], True), ([2, 4, 6, 8], False), ([5, 4, 3, 2], False), ([2, 4, 3, 5], False),
     ([2, 2, 5, 5], False), ([2, 3, 3, 5], False)],
)  # fmt: skip
def test_what_follows_each_other_is_a_slice(places: list[int], follow: bool) -> None:
    memory = np.arange(16, dtype=np.float32)
    found = cells(memory, places)
    assert isinstance(found.place, slice) == isinstance(found.offsets, range) == follow
    assert found.index.tolist() == places and np.asarray(found.offsets).tolist() == [4 * place for place in places]
    loaded = load(found, None, F32)
    assert loaded.tolist() == places
    memory[:] = 0
    assert loaded.tolist() == places  # a copy
    distinct = len(set(places)) == len(places)
    assert contested(found, np.arange(len(places), dtype=np.float32), F32) == (not distinct)
    old = read_modify_write(found, np.float32(1), np.add, F32)
    assert memory.sum() == len(places) and (old.sum() == 0) == distinct
    if distinct:
        store(found, np.array(places, np.float32), F32)
        assert memory[places].tolist() == places and memory.sum() == sum(places)


def test_a_mask_leaves_cells_that_follow_each_other() -> None:
    memory = np.arange(8, dtype=np.float32)
    found = cells(memory, [9, 1, 2, 3, 0], np.array([False, True, True, True, False]))
    assert found.place == slice(1, 4)
    assert load(found, np.float32(-1), F32).tolist() == [-1, 1, 2, 3, -1]


@pytest.mark.parametrize("places", [[0, 1, 2], [0, 2, 1]])
def test_what_is_no_multiple_of_its_size_is_trapped(places: list[int]) -> None:
    with pytest.raises(Trap, match="not a multiple of its 4 bytes"):
        cells(np.zeros(8, np.float32), places, start=2)
