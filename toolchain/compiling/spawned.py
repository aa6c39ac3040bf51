"""Processes that do not run the caller's script again.

Python's own spawned processes import the script that started them, so a script that compiles would have to guard itself
by `if __name__ == "__main__"`. What our processes run is never defined there.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from threading import Lock
from types import ModuleType

_STARTING = Lock()


@contextmanager
def script_hidden() -> Generator[None]:
    """Where Python looks for the script is an empty module meanwhile: there is no argument for it. The place is the
    whole process's, so one thread at a time does this: two that overlap could put back each other's empty module."""
    with _STARTING:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = script


class Spawned(SpawnProcess):
    """A process for which the script is hidden while it is started, and no longer."""

    def start(self) -> None:
        with script_hidden():
            super().start()


class Spawn(SpawnContext):
    """The context for a ProcessPoolExecutor. Not fork, because this process may already have threads."""

    Process = Spawned
