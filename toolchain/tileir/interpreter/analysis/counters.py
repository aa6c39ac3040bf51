"""Counters that were not reset. Each block adds to a counter, and the one that reads the highest number goes on alone,
for example to add up what all have left. If the counter is not 0 before the launch, no block does: nothing waits,
nothing races, and the result is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from .fields import enum, short_name

_FOLLOWED = ("addi", "subi", "exti", "trunci", "reshape", "assume")  # from what is compared back to what was read


class Asked(NamedTuple):
    """What a branch asks: whether `compared`, which was made of what the update read, is `wanted`."""

    update: Operation
    compared: SSAValue
    wanted: SSAValue


def asked(branch: Operation) -> Asked | None:
    """What a branch asks about a counter; None if it asks something else."""
    compare = branch.operands[0].owner
    if not isinstance(compare, Operation) or short_name(compare) != "cmpi":
        return None
    if enum(compare, "comparison_predicate") not in ("equal", "not_equal"):
        return None
    one, other = compare.operands
    for compared, wanted in ((one, other), (other, one)):
        if (update := _update(compared)) is not None:
            return Asked(update, compared, wanted)
    return None


def _update(value: SSAValue) -> Operation | None:
    """The addition to memory whose old value this is, or this was made of."""
    op = value.owner
    if not isinstance(op, Operation):
        return None
    if short_name(op) == "atomic_rmw_tko":
        return op if enum(op, "mode") == "add" and value is op.results[0] else None
    if short_name(op) not in _FOLLOWED:
        return None
    return next((found for operand in op.operands if (found := _update(operand)) is not None), None)


@dataclass
class Counter:
    """What blocks have read of one counter, by one branch."""

    reads: int = 0
    lowest: int = 0
    highest: int = 0
    shifts: set[int] = field(default_factory=set[int])  # what is compared, less what was read
    wanted: set[int] = field(default_factory=set[int])
    reached: bool = False

    def note(self, old: int, compared: int, wanted: int) -> None:
        self.lowest = min(self.lowest, old) if self.reads else old
        self.highest = max(self.highest, old) if self.reads else old
        self.reads += 1
        self.reached |= compared == wanted
        if len(self.wanted) < 2:  # more than one says nothing
            self.shifts.add(compared - old)
            self.wanted.add(wanted)

    @property
    def stale(self) -> bool:
        """True if no block was the last, and one would have been, had the counter been 0."""
        if self.reached or self.reads < 2 or self.lowest <= 0 or len(self.wanted) > 1 or len(self.shifts) > 1:
            return False
        (shift,), (wanted,) = self.shifts, self.wanted
        return wanted - shift == self.highest - self.lowest


@dataclass
class Counters:
    """The counters of a launch, by the update that adds to them and their address."""

    found: dict[tuple[Operation, int], Counter] = field(default_factory=dict[tuple[Operation, int], Counter])

    def note(self, update: Operation, address: int, old: int, compared: int, wanted: int) -> None:
        self.found.setdefault((update, address), Counter()).note(old, compared, wanted)

    def stale(self) -> tuple[Operation, str] | None:
        """The update of a counter that was not reset, and what is wrong."""
        for (update, _), counter in self.found.items():
            if counter.stale:
                return update, (
                    f"none of {counter.reads} blocks is the last that adds to a counter, because it held "
                    f"{counter.lowest} before the launch: a reset is missing"
                )
        return None
