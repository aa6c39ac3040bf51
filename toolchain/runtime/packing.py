"""The memory of a kernel's parameters, as the driver reads it. A repeated launch only writes what changes."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

_WIDTH = 8  # bytes of each parameter in memory: enough for all, and each is aligned


class Packed:
    """The parameters of one prepared launch. `address`: of the table of their places, which a launch takes."""

    def __init__(self, slots: Sequence[str | bytes], elsewhere: Sequence[int] = ()) -> None:
        """`slots`: of each parameter, in the code's order, what it is: "Q", an address that each launch writes; another
        format of `struct`, a number that each launch writes; or the bytes of what stays. `elsewhere`: the addresses of
        parameters behind these, which lie in other memory."""
        addresses = [at for at, slot in enumerate(slots) if slot == "Q"]
        numbers = [at for at, slot in enumerate(slots) if isinstance(slot, str) and slot != "Q"]
        fixed = [at for at, slot in enumerate(slots) if isinstance(slot, bytes)]
        formats = [f"{slots[at]}{_WIDTH - struct.calcsize(f'<{slots[at]}')}x" for at in (*addresses, *numbers)]
        self._head = struct.Struct("<" + "".join(formats))
        content = bytes(self._head.size) + b"".join(bytes(slots[at]).ljust(_WIDTH, b"\0") for at in fixed)  # pyright: ignore[reportArgumentType]
        self._content = ctypes.create_string_buffer(content, max(len(content), 1))
        base = ctypes.addressof(self._content)
        place = {at: base + _WIDTH * number for number, at in enumerate((*addresses, *numbers, *fixed))}
        places = [*(place[at] for at in range(len(slots))), *elsewhere]
        self._table = (ctypes.c_void_p * len(places))(*places)
        self.address = ctypes.addressof(self._table)

    def write(self, addresses: Sequence[int], numbers: Sequence[int | float]) -> None:
        """Both in the code's order. Raises struct.error or OverflowError for a number that its format cannot hold."""
        self._head.pack_into(self._content, 0, *addresses, *numbers)
