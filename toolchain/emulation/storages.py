"""The memory that a launch can reach: the storages of its arguments, and those whose address was asked for."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from ..tileir.interpreter import Placed, Storage, placed


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
        return placed([*self._noted, *others, *_asked()])


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
