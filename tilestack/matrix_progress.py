"""How far a run of the conformance matrix is: each row on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from conformance.result import Row

EVERY_S = 10.0


@dataclass
class Show:
    """Told each row as it comes. `rows`: whether each is printed; failures always are. `lines`: whether there is a line
    every EVERY_S seconds."""

    rows: bool
    lines: bool
    say: Callable[[str], object]
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._started = self._said = self.now()

    def __call__(self, row: Row, done: int, total: int) -> None:
        """`done` of `total` jobs have ended."""
        if row.status in ("failed", "error"):
            self.say(f"{row.status}: {row.cell} {row.shape}: {row.detail}")
        elif self.rows:
            self.say(f"{row.status}: {row.cell} {row.shape}  {row.share or row.detail}")
        if self.lines and total and self.now() - self._said >= EVERY_S:
            self._said = self.now()
            passed = self._said - self._started
            self.say(f"{done} of {total} done, {passed:.0f} s, about {passed * (total - done) / done:.0f} s left")
