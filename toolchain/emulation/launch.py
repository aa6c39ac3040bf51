"""One launch of a kernel on the interpreter, with its arguments where the driver finds them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import SanitizerError
from ..tileir import interpreter
from ..tileir.interpreter import AddressSpace, Allocation, FailedAssertion, Grid, Placed, Pointer
from .settings import Settings

_INTEGERS = {
    1: ctypes.c_uint8, 8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32, 64: ctypes.c_int64,
}  # fmt: skip


def launch(bytecode: bytes, symbol: str, grid: Grid, params: int, memory: Sequence[Placed], settings: Settings) -> None:
    """Runs an entry. `params`: the address of an array of addresses, one for each argument in ABI order.

    Raises SanitizerError and what else the interpreter raises.
    """
    prepared = interpreter.prepare(bytecode)
    space = AddressSpace(memory)
    elements = prepared.parameters(symbol)
    places = (ctypes.c_void_p * len(elements)).from_address(params) if elements else ()
    args = [_argument(element, place, space) for element, place in zip(elements, places, strict=True)]
    try:
        prepared.launch(symbol, args, grid, settings.sanitize, padding=settings.padding, placed=memory)
    except SanitizerError as error:
        if isinstance(error.__cause__, FailedAssertion):
            print(error.__cause__.said)  # as a GPU does
        raise
    finally:
        sys.stdout.flush()  # what the kernel printed comes before what the program prints by other ways


def _argument(element: Any, place: int, space: AddressSpace) -> Pointer | float:
    if element.kind == "pointer":
        address: int = ctypes.c_uint64.from_address(place).value
        return space.pointer_at(address) or Pointer(Allocation(np.zeros(0, np.uint8)))
    if element.kind == "float":
        if element.bits < 32:  # as memory holds it
            stored = np.frombuffer(ctypes.string_at(place, element.storage.itemsize), element.storage)
            return float(element.decode(stored)[0])
        return (ctypes.c_double if element.bits == 64 else ctypes.c_float).from_address(place).value
    return _INTEGERS[element.bits].from_address(place).value
