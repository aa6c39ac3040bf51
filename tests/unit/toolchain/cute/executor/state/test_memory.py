"""Memory: where arrays lie, what is between them, and how a byte is named."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.cute.executor.state.memory import LEAST_GAP, GlobalMemory, Region, elements
from toolchain.cute.executor.state.shadow import Access, Shadow


@pytest.mark.parametrize("align", [1, 4, 16, 128])
def test_an_address_is_as_aligned_as_was_asked_and_no_more(align: int) -> None:
    memory = GlobalMemory()
    for _ in range(2):
        region = memory.add("x", np.zeros((3, 5), np.float32), align=align, unit=4)
        assert region.base % align == 0 and region.base % (2 * align) != 0


def test_arrays_do_not_touch() -> None:
    memory = GlobalMemory()
    first, second = (memory.add(name, np.zeros(9, np.int8), align=1, unit=0) for name in "xy")
    assert first.base + len(first.data) + LEAST_GAP <= second.base
    assert memory.bases.tolist() == [first.base, second.base]


@pytest.mark.parametrize(("unit", "pitch"), [(0, 20), (4, 36), (16, 48)])
def test_rows_are_further_apart_than_they_are_long(unit: int, pitch: int) -> None:
    array = np.arange(15, dtype=np.float32).reshape(3, 5)
    region = GlobalMemory().add("x", array, align=16, unit=unit)
    assert region.pitches == (pitch, 4)
    assert (elements(region) == array).all()
    if unit:
        assert region.inside is not None and region.inside.sum() == array.nbytes
        assert not region.inside[20:pitch].any()
    else:
        assert region.inside is None


def test_bytes_are_named_by_their_element_or_tensor() -> None:
    region = GlobalMemory().add("x", np.zeros((3, 5), np.float32), align=16, unit=4)
    assert region.place(0) == "x[0, 0]"
    assert region.place(2 * 36 + 3 * 4 + 1) == "x[2, 3]"
    parts = [(0, 8, "the first"), (16, 4, "the second")]
    shared = Region("shared memory", 1024, np.zeros(64, np.uint8), Shadow(64), ready=False, parts=parts)
    assert shared.place(7) == "byte 7 of the first"
    assert shared.place(17) == "byte 1 of the second"
    assert shared.place(8) == "byte 8 of shared memory"


def test_an_array_gets_back_what_a_block_has_written() -> None:
    memory = GlobalMemory()
    touched, left = np.zeros((2, 3), np.int32), np.zeros(3, np.int32)
    for name, array in (("x", touched), ("y", left)):
        region = memory.add(name, array, align=16, unit=4)
        elements(region)[...] = 7
        assert (array == 0).all()  # memory is a copy
    memory.regions[0].writers[0] = 0
    memory.write_back()
    assert (touched == 7).all() and (left == 0).all()
    memory.regions[1].reducers[0] = 0
    memory.write_back()
    assert (left == 7).all()


def test_the_threads_of_the_next_block_have_touched_nothing() -> None:
    region = GlobalMemory().add("x", np.zeros(4, np.int8), align=1, unit=0)
    region.shadow.write(np.arange(4), Access(3, 1, 0))
    region.new_block()
    assert region.shadow.first_unwritten(np.arange(4)) == 0
