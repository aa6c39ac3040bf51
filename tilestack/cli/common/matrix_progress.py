"""How far a run of the matrix is: on a terminal rows and a last line, elsewhere a line every ten seconds."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self, TextIO

from conformance.results.result import CellResult
from toolchain import knobs

EVERY_S = 10.0
ENOUGH = 0.1  # of the work has to be done before it says how long the rest takes: the first jobs include starting up
CLEAR = "\r\x1b[2K"  # goes to the start of the line and empties it
COLOURS = {"passed": "32", "failed": "31", "error": "31", "not run": "33"}  # green, red, yellow


@dataclass
class Show:
    """Told the rows of each job. `rows`: whether each is printed; failures always are. `lines`: whether there is a line
    every EVERY_S seconds inside the `with`, be there new rows or not. `status`: gets the line that a terminal shows
    below the rows after each job, and an empty one at the end. `coloured`: whether a row's status is."""

    rows: bool
    lines: bool
    say: Callable[[str], object]
    now: Callable[[], float] = time.monotonic
    status: Callable[[str], object] | None = None
    coloured: bool = False

    @classmethod
    def on(cls, stream: TextIO, *, quiet: bool) -> Self:
        """On a terminal, or on anything else."""
        say = partial(print, file=stream, flush=True)
        if not stream.isatty():
            return cls(rows=False, lines=True, say=say)
        if knobs.plain_output():
            return cls(rows=not quiet, lines=False, say=say)

        def status(line: str) -> None:
            width = shutil.get_terminal_size().columns - 1
            print(f"{CLEAR}{line[:width]}", end="", file=stream, flush=True)

        def above(line: str) -> None:
            say(f"{CLEAR}{line}")

        return cls(rows=not quiet, lines=False, say=above, status=status, coloured=True)

    def __post_init__(self) -> None:
        self._started = self._began = self.now()
        self._part = ""
        self._cells = 0
        self._done = self._total = 0.0
        self._jobs = (0, 0)
        self._over = threading.Event()
        self._ticking = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        if self.lines:
            self._ticking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self.lines:
            self._ticking.join()  # else its line could come behind the end
        if self.status:
            self.status("")

    def __call__(
        self, rows: Sequence[CellResult], done: float, total: float, jobs: tuple[int, int], part: str = ""
    ) -> None:
        """`done` of `total` of a part's work is done, in any unit; `jobs`: how many of how many have ended."""
        if not done:  # the part begins; another one's pace says nothing of it
            self._began, self._part = self.now(), part
        self._cells += len(rows)
        self._done, self._total, self._jobs = done, total, jobs
        for row in rows:
            if row.status in ("failed", "error"):
                self.say(f"{self._painted(row.status)}: {row.cell} {row.shape}: {row.detail}")
            elif self.rows:
                self.say(f"{self._painted(row.status)}: {row.cell} {row.shape}  {row.share or row.detail}")
        if self.status:
            self.status(self.line())

    def _painted(self, status: str) -> str:
        return f"\x1b[{COLOURS[status]}m{status}\x1b[0m" if self.coloured else status

    def _tick(self) -> None:
        while not self._over.wait(EVERY_S):
            self.say(self.line())

    def line(self) -> str:
        """How far it is: cells, and of the part of the run its jobs, the share of its work, and the time that is left
        for it as soon as that can be told."""
        now = self.now()
        cells = f"{self._cells} cells in {now - self._started:.0f} s"
        if not self._total:
            return cells
        share = self._done / self._total
        left = f", about {(now - self._began) * (1 - share) / share:.0f} s left" if share >= ENOUGH else ""
        ended, of = self._jobs
        part = f"{self._part}: " if self._part else ""
        return f"{cells}, {part}{ended} of {of} jobs, {share:.0%} of the work{left}"
