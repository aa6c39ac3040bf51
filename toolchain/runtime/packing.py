"""The memory of a kernel's parameters, as the driver reads it. A repeated launch only writes what changes."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Mapping, Sequence

import ml_dtypes
import numpy as np

from ..contract.tma import ALIGNED

FORMATS: Mapping[str, str] = {  # of `struct`; i1 has none that refuses a 2
    "i8": "b", "i16": "h", "i32": "i", "i64": "q", "f16": "e", "f32": "f", "tf32": "f", "f64": "d",
}  # fmt: skip
_OTHERS = {
    "i1": np.bool_, "bf16": ml_dtypes.bfloat16, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip
_WIDTH = 8  # bytes of each parameter in memory at least: enough for a number, and each is aligned


def number(dtype: str, value: float) -> bytes:
    """A number as a kernel's parameter of this dtype. Raises struct.error or OverflowError where it does not fit."""
    if dtype in FORMATS:
        return struct.pack(f"<{FORMATS[dtype]}", value)
    return np.array(value).astype(_OTHERS[dtype]).tobytes()


def array(numbers: Iterable[tuple[str, float]]) -> list[str | bytes]:
    """The slots of an array: its address, and the sizes and strides that follow it, each with its dtype."""
    return ["Q", *(number(dtype, value) for dtype, value in numbers)]


class Packed:
    """The parameters of one prepared launch. `address`: of the table of their places, which a launch takes."""

    def __init__(self, slots: Sequence[str | bytes], elsewhere: Sequence[int] = ()) -> None:
        """`slots`: of each parameter, in the code's order, what it is: "Q", an address that each launch writes; another
        format of `struct`, a number that each launch writes; or the bytes of what stays, such as a tensor map.
        `elsewhere`: the addresses of parameters behind these, which lie in other memory."""
        addresses = [at for at, slot in enumerate(slots) if slot == "Q"]
        numbers = [at for at, slot in enumerate(slots) if isinstance(slot, str) and slot != "Q"]
        formats = [f"{slots[at]}{_WIDTH - struct.calcsize(f'<{slots[at]}')}x" for at in (*addresses, *numbers)]
        self._head = struct.Struct("<" + "".join(formats))
        offsets = {at: _WIDTH * place for place, at in enumerate((*addresses, *numbers))}
        content = bytearray(self._head.size)
        for at, slot in enumerate(slots):
            if isinstance(slot, bytes):
                content += bytes(-len(content) % (ALIGNED if len(slot) >= ALIGNED else _WIDTH))
                offsets[at] = len(content)
                content += slot
        self._content = ctypes.create_string_buffer(len(content) + ALIGNED)
        base = ctypes.addressof(self._content)
        self._start = -base % ALIGNED
        ctypes.memmove(base + self._start, bytes(content), len(content))
        places = [*(base + self._start + offsets[at] for at in range(len(slots))), *elsewhere]
        self._table = (ctypes.c_void_p * len(places))(*places)
        self.address = ctypes.addressof(self._table)

    def write(self, addresses: Sequence[int], numbers: Sequence[int | float]) -> None:
        """Both in the code's order. Raises struct.error or OverflowError for a number that its format cannot hold."""
        self._head.pack_into(self._content, self._start, *addresses, *numbers)
