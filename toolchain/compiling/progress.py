"""How far a compile is: a bar on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from toolchain.compiling.pipeline import Progress

EVERY_S = 10


@contextmanager
def progress_bar() -> Generator[Progress]:
    """On standard error."""
    if not sys.stderr.isatty():
        yield Lines(sys.stderr)
        return
    from rich import progress as rich_progress
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    what = TextColumn("{task.fields[what]}")
    columns = (TextColumn("compiling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), what)
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compile", total=None, what="")

        def show(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, what=what)

        yield show


class Lines:
    """`compiled 120 of 800 steps in 40 s, about 3 min left`, every ten seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._started = self._told = clock()
        self._first = -1  # steps that the first call counted: what comes from the cache says nothing of the rest

    def __call__(self, done: int, total: int, what: str) -> None:
        del what
        now = self._clock()
        if now - self._told < EVERY_S:
            return
        if self._first < 0:
            self._first, self._since = done, self._told
        self._told = now
        rate = (done - self._first) / (now - self._since) if done > self._first else done / (now - self._started)
        left = (total - done) / rate
        print(
            f"compiled {done} of {total} steps in {_words(now - self._started)}, about {_words(left)} left",
            file=self._stream, flush=True,
        )  # fmt: skip


def _words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
