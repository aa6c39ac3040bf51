"""One piece of memory for buffers that do not all live at once: where each lies, planned before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ALIGNMENT = 256  # bytes, as the allocators of GPUs give it


@dataclass(frozen=True)
class Span:
    """A buffer of `nbytes` and the steps at which its contents matter."""

    nbytes: int
    steps: frozenset[int]

    def meets(self, other: Span) -> bool:
        return not self.steps.isdisjoint(other.steps)


@dataclass(frozen=True)
class Arena:
    """Where each buffer lies, in bytes from the start, and how long the whole is."""

    offsets: Mapping[str, int]
    nbytes: int


def plan(spans: Mapping[str, Span]) -> Arena:
    """Places buffers so that two that are used at the same time never overlap: the largest first, each at the lowest
    place that is free for as long as it lives (the usual greedy heuristic of static memory planning)."""
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
