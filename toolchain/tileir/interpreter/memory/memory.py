"""The interpreter's memory: allocations, pointers into them, and one address space per launch.

In a launch, allocation number n starts at address ((n + 65536) << 40) + 256. Allocations are so far apart that no
wrong offset reaches from one into the next. Every base is aligned to exactly 256 bytes, which cudaMalloc promises.

A program may know its memory by addresses of its own, and put them into memory: a list of arrays is an array of
pointers. So a space can be told where allocations lie for the program. A pointer that a kernel reads from memory, or
makes of an integer, is translated when it is read, and back when it is written; the program's addresses are all lower
than ours.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from toolchain.errors import UsageError

from ..numbers.elements import Array

_SPAN_BITS = 40
_BASE = 256
_FIRST = 1 << 16  # allocation 0 starts beyond any address of a program on x86-64 or aarch64


class Trap(Exception):
    """Undefined behaviour in a running block. The launch turns it into a SanitizerError that names entry, operation,
    source location and block. `op`: the operation, if it is another than the one whose line was running."""

    op: Any = None


class FailedAssertion(Trap):
    """An `assert` that does not hold. `said`: its message."""

    def __init__(self, said: str, at: str) -> None:
        super().__init__(f"assertion failed{at}: {said}")
        self.said = said


class Allocation:
    """Memory owned by a numpy array, seen as flat bytes. Every access of a kernel is checked against its bounds."""

    __slots__ = ("_typed", "array", "bytes", "nbytes")

    def __init__(self, array: Array) -> None:
        if not array.flags.c_contiguous:
            raise UsageError("an allocation needs a C-contiguous array", hint="pass numpy.ascontiguousarray(array)")
        self.array = array
        self.bytes: Array = array.reshape(-1).view(np.uint8)
        self.nbytes = array.nbytes
        self._typed: dict[np.dtype[Any], Array] = {}

    def typed(self, dtype: np.dtype[Any], offset: int = 0) -> Array:
        """All whole elements of `dtype` from byte `offset` on, sharing memory."""
        if offset == 0 and dtype in self._typed:
            return self._typed[dtype]
        count = max(0, (self.nbytes - offset) // dtype.itemsize)
        made = np.ndarray((count,), dtype, self.bytes, offset) if count else np.empty(0, dtype)
        if offset == 0:
            self._typed[dtype] = made
        return made


@dataclass(frozen=True)
class Pointer:
    """An address: `offset_bytes` into `memory`."""

    memory: Allocation
    offset_bytes: int = 0


class Placed(NamedTuple):
    """Memory, and the address that the program knows it by."""

    address: int
    memory: Allocation


class AddressSpace:
    """The allocations that one launch can reach, by address. `placed`: those whose addresses the program knows."""

    def __init__(self, placed: Sequence[Placed] = ()) -> None:
        self._allocations: list[Allocation] = []
        self._numbers: dict[int, int] = {}
        self.unspecified: dict[int, Array] = {}  # by allocation (see unspecified.py)
        self._placed = sorted(placed, key=lambda each: each.address)
        self._starts = [each.address for each in self._placed]

    def pointer_at(self, address: int) -> Pointer | None:
        """The pointer that the program knows as `address`: into its memory, or to its end. None if nothing is there."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address > self._starts[at] + self._placed[at].memory.nbytes:
            return None
        return Pointer(self._placed[at].memory, address - self._starts[at])

    def from_program(self, addresses: Any) -> Any:
        """Pointers of the program as this launch's addresses; what it does not know stays, and traps when it is used.
        A number or an array of int64."""
        return self._translated(addresses, self._from_program)

    def to_program(self, addresses: Any) -> Any:
        """The reverse: what the program knows these addresses as."""
        return self._translated(addresses, self._to_program)

    def _translated(self, addresses: Any, one: Callable[[int], int]) -> Any:
        if not self._placed:
            return addresses
        if not np.ndim(addresses):
            return one(int(addresses))
        found = [one(address) for address in addresses.reshape(-1).tolist()]
        return np.array(found, np.int64).reshape(addresses.shape)

    def _from_program(self, address: int) -> int:
        pointer = self.pointer_at(address)
        return address if pointer is None else self.address(pointer)

    def _to_program(self, address: int) -> int:
        number = (address >> _SPAN_BITS) - _FIRST
        if not 0 <= number < len(self._allocations):
            return address
        starts = (each.address for each in self._placed if each.memory is self._allocations[number])
        start = next(starts, None)
        return address if start is None else start + address - base_address(number)

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
        number = (address >> _SPAN_BITS) - _FIRST
        if not 0 <= number < len(self._allocations):
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
    return ((number + _FIRST) << _SPAN_BITS) + _BASE


def extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """First and last byte offset that a strided window touches, relative to its origin. `shape` has no zero."""
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    return low, high + itemsize - 1
