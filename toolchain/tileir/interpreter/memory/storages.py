"""Memory that a program has allocated, by the addresses that it knows.

A storage is what a library has allocated at once: views into one array share it, so a kernel may go from one of them
to another as it may on a GPU, but not from one storage into the next. Storages that overlap, as those of two libraries
over the same memory, are one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .memory import Allocation, Placed

# Specializations of a signature speak of multiples of 16 bytes, so an allocation starts at one, as the interpreter's
# addresses do. Memory is mapped in larger pieces, so the bytes before the storage can be read too.
ALIGNMENT = 16


class Storage(NamedTuple):
    """`owner` keeps the memory alive. `writeable`: a kernel may write to it. `own`: an allocation starts where it does,
    whatever its address."""

    address: int
    nbytes: int
    owner: object
    writeable: bool = True
    own: bool = False


def placed(storages: Iterable[Storage]) -> list[Placed]:
    """The storages as memory of a launch, each byte in one allocation."""
    return [_allocation(each) for each in _joined(storages)]


def _joined(storages: Iterable[Storage]) -> list[Storage]:
    found: list[Storage] = []
    for each in sorted(storages, key=lambda storage: (storage.address, -storage.nbytes)):
        if found and each.address < found[-1].address + found[-1].nbytes:
            last = found.pop()
            end = max(last.address + last.nbytes, each.address + each.nbytes)
            writeable = last.writeable and each.writeable
            each = Storage(last.address, end - last.address, (last.owner, each.owner), writeable)
        found.append(each)
    return found


def _allocation(storage: Storage) -> Placed:
    lead = 0 if storage.own else storage.address % ALIGNMENT
    start, nbytes = storage.address - lead, storage.nbytes + lead
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(start))
    memory.flags.writeable = storage.writeable
    return Placed(start, Allocation(memory))
