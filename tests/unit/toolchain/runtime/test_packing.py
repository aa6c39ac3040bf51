"""The memory of a launch's parameters, read back through the table that the driver gets."""

from __future__ import annotations

import ctypes
import struct

import pytest

from toolchain.runtime.packing import Packed, number

KINDS = "iQbfQed"  # of the parameters below, in the code's order


def places(packed: Packed, count: int) -> list[int]:
    return [place or 0 for place in (ctypes.c_void_p * count).from_address(packed.address)]


def read(packed: Packed) -> list[int | float]:
    table = zip(KINDS, places(packed, len(KINDS)), strict=True)
    return [struct.unpack(f"<{kind}", ctypes.string_at(at, struct.calcsize(f"<{kind}")))[0] for kind, at in table]


def test_what_changes_is_written_and_the_rest_stays() -> None:
    packed = Packed([struct.pack("<i", -5), "Q", "b", "f", "Q", "e", struct.pack("<d", 0.1)], [4096])
    for step in (1, 2):
        packed.write([2**40 + step, step], [-step, 0.5 * step, 1.5])
        assert read(packed) == [-5, 2**40 + step, -step, 0.5 * step, step, 1.5, 0.1]
    assert all(at % 8 == 0 for at in places(packed, 7)) and places(packed, 8)[7] == 4096


def test_a_number_that_does_not_fit_is_an_error() -> None:
    packed = Packed(["Q", "b", "f"])
    with pytest.raises(struct.error):
        packed.write([0], [128, 0.0])
    with pytest.raises(OverflowError):
        packed.write([0], [0, 1e39])


@pytest.mark.parametrize("before", range(4))
def test_what_is_as_large_as_a_tensor_map_is_aligned_as_one(before: int) -> None:
    content = bytes(range(128))
    packed = Packed([*["Q"] * before, b"\1\2\3", content, "i", content])
    found = places(packed, before + 4)
    packed.write(range(before), [-1])
    for at in (found[before + 1], found[before + 3]):
        assert at % 64 == 0 and ctypes.string_at(at, 128) == content
    assert ctypes.string_at(found[before], 3) == b"\1\2\3"


@pytest.mark.parametrize(
    ("dtype", "value", "content"),
    [("i1", True, b"\1"), ("bf16", 1.0, b"\x80\x3f"), ("f8E5M2", 1.0, b"\x3c"), ("i16", -2, b"\xfe\xff")],
)
def test_a_number_has_the_width_of_its_dtype(dtype: str, value: float, content: bytes) -> None:
    assert number(dtype, value) == content


def test_a_kernel_without_parameters() -> None:
    Packed([]).write([], [])
