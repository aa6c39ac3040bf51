"""Plans one block of memory for many buffers. Buffers that are not in use at the same time may share addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ALIGNMENT = 256  # bytes, as GPU allocators align


@dataclass(frozen=True)
class Span:
    """A buffer of `nbytes` and the steps at which its contents matter."""

    nbytes: int
    steps: frozenset[int]

    def meets(self, other: Span) -> bool:
        return not self.steps.isdisjoint(other.steps)


@dataclass(frozen=True)
class Arena:
    """The offset of each buffer in bytes, and the size of the whole."""

    offsets: Mapping[str, int]
    nbytes: int


def plan(spans: Mapping[str, Span]) -> Arena:
    """Place the buffers so that two that are in use at the same time never overlap. The largest is placed first; each
    goes to the lowest address that is free at all its steps (the usual greedy heuristic of static memory planning)."""
    offsets: dict[str, int] = {}
    for name in sorted(spans, key=lambda name: -spans[name].nbytes):
        own = spans[name]
        taken = sorted((at, at + spans[other].nbytes) for other, at in offsets.items() if own.meets(spans[other]))
        offsets[name] = _lowest_gap(taken, own.nbytes)
    return Arena(offsets, max((at + spans[name].nbytes for name, at in offsets.items()), default=0))


def _lowest_gap(taken: Sequence[tuple[int, int]], nbytes: int) -> int:
    at = 0
    for start, end in taken:
        if at + nbytes <= start:
            break
        at = max(at, -(-end // ALIGNMENT) * ALIGNMENT)
    return at
