"""What the compile cache did in one run: hits, misses, bytes, seconds saved, and what went wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .shared import Problem
from .stored import Entry


@dataclass
class Counts:
    """Numbers of one run; threads may count at the same time.

    `hits`: entries from the folder; `shared_hits`: from the shared cache; `misses`: entries in neither, or not usable.
    `damaged`: entries whose digest does not fit; `refused`: shared entries that no trusted key has signed; `errors`:
    failed requests. `read`, `received`, `written`, `sent`: bytes from the folder, from the shared cache, to the folder,
    to the shared cache. `saved`: seconds that making the hits once took; `unknown`: hits that do not say. `spent`:
    seconds that making the misses took. Both are wall times of single steps, of which several run at once.
    """

    hits: int = 0
    shared_hits: int = 0
    misses: int = 0
    damaged: int = 0
    refused: int = 0
    errors: int = 0
    read: int = 0
    received: int = 0
    written: int = 0
    sent: int = 0
    saved: float = 0.0
    unknown: int = 0
    spent: float = 0.0
    trouble: str = ""  # the first thing that went wrong
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @classmethod
    def summed(cls, runs: Iterable[Mapping[str, Any]]) -> Counts:
        """The counts of several runs together, each as `Cache.runs` has it."""
        total = cls()
        for run in runs:
            total.add(**{name: count for name, count in run.items() if name != "time" and not isinstance(count, str)})
        return total

    def add(self, **more: float) -> None:
        with self._lock:
            for name, value in more.items():
                setattr(self, name, getattr(self, name) + value)

    def hit(self, entry: Entry, size: int, *, shared: bool) -> None:
        how = {"shared_hits": 1, "received": size} if shared else {"hits": 1, "read": size}
        self.add(**how, saved=entry.seconds or 0.0, unknown=int(entry.seconds is None))

    def problem(self, problem: Problem) -> None:
        self.add(**{problem.kind: 1})
        self._remember(str(problem))

    def fail(self, message: str) -> None:
        self.add(errors=1)
        self._remember(message)

    def _remember(self, message: str) -> None:
        with self._lock:
            self.trouble = self.trouble or message

    def to_json(self) -> dict[str, Any]:
        """All counts by name; seconds with two digits after the point."""
        found = {each.name: getattr(self, each.name) for each in fields(self) if not each.name.startswith("_")}
        return {name: round(value, 2) if isinstance(value, float) else value for name, value in found.items()}

    def __str__(self) -> str:
        looked_up = self.hits + self.shared_hits + self.misses
        parts = [f"cache: {self.hits + self.shared_hits} of {looked_up} found"]
        parts[0] += f" ({self.shared_hits} in the shared cache)" if self.shared_hits else ""
        moved = self.read + self.received
        parts.append(f"{moved / 1e6:.1f} MB read, {self.written / 1e6:.1f} MB written")
        parts[-1] += f", {self.sent / 1e6:.1f} MB sent" if self.sent else ""
        parts.append(f"{self.saved:.1f} s of compiling saved")
        parts[-1] += f" ({self.unknown} do not say)" if self.unknown else ""
        for count, what in ((self.damaged, "damaged"), (self.refused, "not signed by a trusted key")):
            parts += [f"{count} {what}, not used"] if count else []
        return "; ".join(parts)


def markdown(compiles: Mapping[str, Counts]) -> str:
    """A table with a row for each compile, by its name: for the summary of a CI step, and for a comment."""
    heads = ("compile", "hits", "of them shared", "misses", "MB read", "MB written", "s saved", "s spent", "not used")
    lines = [f"| {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) - 1)]
    for name, of in compiles.items():
        bytes_ = (f"{(of.read + of.received) / 1e6:.1f}", f"{(of.written + of.sent) / 1e6:.1f}")
        found = (of.hits + of.shared_hits, of.shared_hits, of.misses, *bytes_)
        cells = (name, *found, f"{of.saved:.1f}", f"{of.spent:.1f}", of.damaged + of.refused)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(["### Compile cache", "", *lines, ""]) + "\n"
