"""Bank conflicts of shared memory, from the addresses that the threads of a warp use.

There are 32 banks of 4 bytes. Threads that need different words of one bank take turns; threads that need the same word
share it. Accesses of 8 bytes are done by half a warp at a time, those of 16 bytes by a quarter. Source: CUDA C++
Programming Guide, "Shared Memory".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

BANKS, WORD = 32, 4
ROW = BANKS * WORD


def ways(addresses: NDArray[np.int64], lanes: NDArray[np.int64], width: int) -> list[int]:
    """For each group of threads that is served at once, the words that the busiest bank must give: 1 is no conflict.

    `addresses`: in bytes, of the threads `lanes` of a warp. `width`: the bytes of a thread.
    """
    groups = lanes // (BANKS if width <= WORD else ROW // width)
    return [_ways(addresses[groups == group], width) for group in np.unique(groups)]


def _ways(addresses: NDArray[np.int64], width: int) -> int:
    words = addresses[:, None] // WORD + np.arange(max(1, width // WORD))
    return int(np.bincount(np.unique(words) % BANKS).max())


@dataclass
class Conflicts:
    """The accesses of one instruction. `served`: groups of threads, each of which takes one turn without conflicts.
    `turns`: that they took. `worst`: of one group."""

    op: str
    location: str
    executed: int = 0
    served: int = 0
    turns: int = 0
    worst: int = 1

    def __str__(self) -> str:
        at = f" at {self.location}" if self.location else ""
        return f"{self.op}{at}: {self.worst}-way, {self.turns} turns where {self.served} do ({self.executed} times)"


class Instruction(Protocol):
    """`number`: of its step."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def location(self) -> str: ...


@dataclass
class Counter:
    """Counts by step. Patterns that differ by whole rows of banks are worked out once."""

    by_step: dict[int, Conflicts] = field(default_factory=dict[int, Conflicts])
    known: dict[tuple[bytes, bytes, int], list[int]] = field(default_factory=dict[tuple[bytes, bytes, int], list[int]])

    def count(self, step: Instruction, addresses: NDArray[np.int64], lanes: NDArray[np.int64], width: int) -> None:
        """One access of a warp."""
        near = addresses - addresses.min() // ROW * ROW
        key = near.tobytes(), lanes.tobytes(), width
        if (found := self.known.get(key)) is None:
            found = self.known[key] = ways(near, lanes, width)
        if (row := self.by_step.get(step.number)) is None:
            row = self.by_step[step.number] = Conflicts(step.name, step.location)
        row.executed += 1
        row.served += len(found)
        row.turns += sum(found)
        row.worst = max(row.worst, *found)

    @property
    def rows(self) -> tuple[Conflicts, ...]:
        """One row for each place in the source, the worst first."""
        made: dict[tuple[str, str], Conflicts] = {}
        for row in self.by_step.values():
            whole = made.setdefault((row.op, row.location), Conflicts(row.op, row.location))
            whole.executed += row.executed
            whole.served += row.served
            whole.turns += row.turns
            whole.worst = max(whole.worst, row.worst)
        return tuple(sorted(made.values(), key=lambda row: (-row.worst, row.served - row.turns)))
