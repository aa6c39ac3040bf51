"""The interpreter's memory: allocations, pointers into them, and one address space per launch.

In a launch, allocation number n starts at address (n << 40) + 256. Allocations are so far apart that no wrong offset
reaches from one into the next. Every base is aligned to exactly 256 bytes, the alignment that cudaMalloc promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolchain.errors import UsageError

from .elements import Array

_SPAN_BITS = 40
_BASE = 256


class Trap(Exception):
    """Undefined behaviour in a running block. The launch turns it into a SanitizerError that names entry, operation,
    source location and block."""


class Allocation:
    """Memory owned by a numpy array, seen as flat bytes. Every access of a kernel is checked against its bounds."""

    __slots__ = ("array", "bytes", "nbytes")

    def __init__(self, array: Array) -> None:
        if not array.flags.c_contiguous:
            raise UsageError("an allocation needs a C-contiguous array", hint="pass numpy.ascontiguousarray(array)")
        self.array = array
        self.bytes: Array = array.reshape(-1).view(np.uint8)
        self.nbytes = array.nbytes

    def typed(self, dtype: np.dtype[Any], offset: int = 0) -> Array:
        """All whole elements of `dtype` from byte `offset` on, sharing memory."""
        count = max(0, (self.nbytes - offset) // dtype.itemsize)
        return np.ndarray((count,), dtype, self.bytes, offset) if count else np.empty(0, dtype)


@dataclass(frozen=True)
class Pointer:
    """An address: `offset_bytes` into `memory`."""

    memory: Allocation
    offset_bytes: int = 0


class AddressSpace:
    """The allocations that one launch can reach, by address."""

    def __init__(self) -> None:
        self._allocations: list[Allocation] = []
        self._numbers: dict[int, int] = {}
        self.unspecified: dict[int, Array] = {}  # by allocation (see unspecified.py)

    @property
    def allocations(self) -> Sequence[Allocation]:
        return self._allocations

    def address(self, pointer: Pointer) -> int:
        """The address of a pointer; its allocation joins the space if it is new."""
        number = self._numbers.get(id(pointer.memory))
        if number is None:
            number = self._numbers[id(pointer.memory)] = len(self._allocations)
            self._allocations.append(pointer.memory)
        return base_address(number) + pointer.offset_bytes

    def number(self, address: int) -> int:
        """The allocation that an address belongs to. Traps if there is none."""
        number = address >> _SPAN_BITS
        if not 0 <= number < len(self._allocations) or address < 0:
            raise Trap(f"address {address:#x} does not belong to any allocation")
        return number

    def __getitem__(self, number: int) -> Allocation:
        return self._allocations[number]

    def shadow(self, number: int) -> Array:
        """A byte for each byte of an allocation, not 0 where it is unspecified."""
        if number not in self.unspecified:
            self.unspecified[number] = np.zeros(self._allocations[number].nbytes, np.uint8)
        return self.unspecified[number]

    def check(self, number: int, first: int, last: int) -> None:
        """Traps unless bytes `first` .. `last` (offsets, inclusive) lie in allocation `number`."""
        nbytes = self._allocations[number].nbytes
        if first < 0 or last >= nbytes:
            raise Trap(
                f"access to bytes {first} .. {last} of an allocation of {nbytes} bytes "
                f"({'before its start' if first < 0 else 'beyond its end'})"
            )


def base_address(number: int) -> int:
    return (number << _SPAN_BITS) + _BASE


def extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """First and last byte offset that a strided window touches, relative to its origin. `shape` has no zero."""
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    return low, high + itemsize - 1
