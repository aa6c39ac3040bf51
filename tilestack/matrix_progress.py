"""How far a run of the conformance matrix is: each row on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from conformance.result import Row

EVERY_S = 10.0
ENOUGH = 0.1  # of the work has to be done before it says how long the rest takes: the first jobs include starting up


@dataclass
class Show:
    """Told the rows of each job. `rows`: whether each is printed; failures always are. `lines`: whether there is a line
    every EVERY_S seconds inside the `with`, be there new rows or not."""

    rows: bool
    lines: bool
    say: Callable[[str], object]
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._started = self.now()
        self._cells = 0
        self._done = self._total = 0.0
        self._over = threading.Event()
        self._ticking = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        if self.lines:
            self._ticking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def __call__(self, rows: Sequence[Row], done: float, total: float) -> None:
        """`done` of `total` of the work is done, in any unit."""
        self._cells += len(rows)
        self._done, self._total = done, total
        for row in rows:
            if row.status in ("failed", "error"):
                self.say(f"{row.status}: {row.cell} {row.shape}: {row.detail}")
            elif self.rows:
                self.say(f"{row.status}: {row.cell} {row.shape}  {row.share or row.detail}")

    def _tick(self) -> None:
        while not self._over.wait(EVERY_S):
            self.say(self.line())

    def line(self) -> str:
        """How far it is: cells, the share of the work, and the time left as soon as that can be told."""
        passed = self.now() - self._started
        if not self._total:
            return f"{self._cells} cells in {passed:.0f} s"
        share = self._done / self._total
        left = f", about {passed * (1 - share) / share:.0f} s left" if share >= ENOUGH else ""
        return f"{self._cells} cells in {passed:.0f} s, {share:.0%} of the work{left}"
