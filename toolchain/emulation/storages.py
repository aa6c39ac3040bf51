"""The memory that a launch can reach, by the addresses that the program knows.

A storage is what a library has allocated at once: views into one tensor share it, so a kernel may go from one of them
to another as it may on a GPU, but not from one storage into the next. Storages that overlap, as those of two libraries
over the same memory, are one.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..tileir.interpreter import Allocation, Placed

# Specializations of a signature speak of multiples of 16 bytes, so an allocation starts at one, as the interpreter's
# addresses do. Memory is mapped in larger pieces, so the bytes before the storage can be read too.
_ALIGNMENT = 16


class Storage(NamedTuple):
    """`owner` keeps the memory alive. `writeable`: a kernel may write to it."""

    address: int
    nbytes: int
    owner: object
    writeable: bool = True


class Storages(threading.local):
    """The storages of the launch that this thread prepares."""

    def __init__(self) -> None:
        self._noted: list[Storage] = []

    def note(self, storage: Storage) -> None:
        """An argument of the launch lies in this storage."""
        if storage.nbytes:
            self._noted.append(storage)

    def clear(self) -> None:
        self._noted.clear()

    def placed(self, others: Iterable[Storage] = ()) -> list[Placed]:
        """The launch's memory: these storages, and those whose address a program has asked for."""
        return [_allocation(each) for each in _joined([*self._noted, *others, *_asked()])]


# An array of addresses, such as one pointer a peer or a group, is made of what `data_ptr` returned. Such a storage
# can be reached as long as the object lives that was asked.
_askers: dict[int, tuple[weakref.ref[Any], Callable[[Any], Storage]]] = {}


def note_asked(owner: Any, storage_of: Callable[[Any], Storage]) -> None:
    """The program has asked for the address of `owner`, whose storage that function tells."""
    key = id(owner)
    if key not in _askers:
        _askers[key] = weakref.ref(owner, lambda _: _askers.pop(key, None)), storage_of


def _asked() -> list[Storage]:
    alive = [(reference(), storage_of) for reference, storage_of in list(_askers.values())]
    return [storage for owner, storage_of in alive if owner is not None and (storage := storage_of(owner)).nbytes]


def _joined(storages: list[Storage]) -> list[Storage]:
    """The storages, each byte in one of them."""
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
    lead = storage.address % _ALIGNMENT
    start, nbytes = storage.address - lead, storage.nbytes + lead
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(start))
    memory.flags.writeable = storage.writeable
    return Placed(start, Allocation(memory))
