"""The driver's calls that copy or fill a chunk, and what their arguments say."""

from __future__ import annotations

import pytest

from toolchain.runtime import copies
from toolchain.runtime.layout import Chunk

from .fake_driver import FakeDriver

HOST, DEVICE = 0x1000, 0x80000
WHOLE, ROWS = Chunk(8, 16, 3, 64, 64), Chunk(8, 16, 3, 96, 64)


def test_rows_without_gaps_are_one_piece() -> None:
    fake = FakeDriver()
    assert copies.from_host(fake, DEVICE, HOST, WHOLE) == ("cuMemcpyHtoDAsync", (DEVICE + 16, HOST + 8, 192))
    assert copies.to_host(fake, HOST, DEVICE, WHOLE) == ("cuMemcpyDtoHAsync", (HOST + 8, DEVICE + 16, 192))


def test_rows_with_gaps_are_copied_in_two_dimensions() -> None:
    fake = FakeDriver()
    kinds = fake.CUmemorytype
    call, (copy,) = copies.from_host(fake, DEVICE, HOST, ROWS)
    assert (call, copy.WidthInBytes, copy.Height) == ("cuMemcpy2DAsync", 64, 3)
    assert (copy.srcMemoryType, int(copy.srcHost), copy.srcPitch) == (kinds.CU_MEMORYTYPE_HOST, HOST + 8, 64)
    assert (copy.dstMemoryType, int(copy.dstDevice), copy.dstPitch) == (kinds.CU_MEMORYTYPE_DEVICE, DEVICE + 16, 96)
    call, (copy,) = copies.to_host(fake, HOST, DEVICE, ROWS)
    assert (call, copy.WidthInBytes, copy.Height) == ("cuMemcpy2DAsync", 64, 3)
    assert (copy.srcMemoryType, int(copy.srcDevice), copy.srcPitch) == (kinds.CU_MEMORYTYPE_DEVICE, DEVICE + 16, 96)
    assert (copy.dstMemoryType, int(copy.dstHost), copy.dstPitch) == (kinds.CU_MEMORYTYPE_HOST, HOST + 8, 64)


@pytest.mark.parametrize("itemsize", [1, 2, 4])
def test_a_pattern_is_written_to_each_element(itemsize: int) -> None:
    bits = 8 * itemsize
    assert copies.fill(DEVICE, WHOLE, itemsize, 7) == (f"cuMemsetD{bits}Async", (DEVICE + 16, 7, 192 // itemsize))
    two = (f"cuMemsetD2D{bits}Async", (DEVICE + 16, 96, 7, 64 // itemsize, 3))
    assert copies.fill(DEVICE, ROWS, itemsize, 7) == two
