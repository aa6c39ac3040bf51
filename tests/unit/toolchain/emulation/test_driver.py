"""The driver's functions, called as C calls them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from toolchain.emulation.driver import Driver, image
from toolchain.emulation.settings import Settings
from toolchain.tileir import bytecode, text

# out[block] = 2 * factor
KERNEL = """
entry @k(%out: tile<ptr<i32>>, %factor: tile<i32>) {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %two = constant <i32: 2> : tile<i32>
  %value = muli %factor, %two : tile<i32>
  %at = offset %out, %x : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
  %t = store_ptr_tko weak %at, %value : tile<ptr<i32>>, tile<i32> -> token
  return
}
"""


class Functions:
    """The driver as a program of C sees it. Each call has to succeed."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def code(self, name: str, *args: Any) -> int:
        found = ctypes.c_void_p()
        assert self._driver.get_address(name.encode(), ctypes.byref(found), 0, 0, None) == 0
        assert found.value
        return ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * len(args))(found.value)(*args)

    def call(self, name: str, *args: Any) -> None:
        assert self.code(name, *args) == 0

    def made(self, name: str, *args: Any) -> int:
        out = ctypes.c_void_p()
        self.call(name, ctypes.addressof(out), *args)
        return out.value or 0


@pytest.fixture
def cuda() -> Functions:
    return Functions(Driver(Settings()))


def test_a_program_launches_without_cutile(cuda: Functions) -> None:
    code = image(bytecode.write(text.parse(KERNEL, filename="k.mlir"), "13.3"))
    library = cuda.made("cuLibraryLoadData", code, *[None] * 6)
    kernel = cuda.made("cuLibraryGetKernel", library, b"k")
    out, factor = ctypes.c_void_p(cuda.made("cuMemAlloc", 12)), ctypes.c_int32(21)
    places = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(factor))
    cuda.call("cuLaunchKernel", kernel, 3, 1, 1, 1, 1, 1, 0, 0x5000, ctypes.addressof(places), None)
    assert np.ctypeslib.as_array((ctypes.c_int32 * 4).from_address(out.value or 0)).tolist() == [42, 42, 42, 0]


def test_what_is_not_emulated_and_a_cubin_fail(cuda: Functions) -> None:
    assert cuda.code("cuGraphCreate", None) == 801
    out = ctypes.c_void_p()
    assert cuda.code("cuLibraryLoadData", ctypes.addressof(out), b"\x7fELF" + bytes(64)) == 801
    cuda.call("cuCtxSynchronize")
