"""Steps: nights from which on a cell takes another time than before."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .nights import Cell, Machine, Measured, Night, Time

# More than twice what two processes differ by on an H200 with the same kernels (1.3 %: docs/gate.md).
TOLERANCE = 0.03
Kind = Literal["slower", "faster"]


@dataclass(frozen=True)
class Step:
    """`night`: the first one with the new time; `before`: the last one with the old. Numbers of nights. `old_us`: the
    median since the step before. `confirmed`: a later night says the same. `causes`: what else changed with it."""

    cell: Cell
    on: Machine
    night: int
    before: int
    kind: Kind
    old_us: float
    new_us: float
    confirmed: bool
    causes: Sequence[str]

    @property
    def change(self) -> float:
        return self.new_us / self.old_us - 1


def series(nights: Sequence[Night], cell: Cell, on: Machine) -> dict[int, Time]:
    """A cell's times by the number of the night."""
    found = ((at, night.by[on].times.get(cell)) for at, night in enumerate(nights) if on in night.by)
    return {at: time for at, time in found if time is not None}


def steps(nights: Sequence[Night], cell: Cell, on: Machine) -> list[Step]:
    """The steps of a cell on a GPU. A time is away from the level if its whole interval lies beyond the tolerance. The
    next night must say so too, or it was a bad night; the last night's step is not confirmed yet."""
    times = series(nights, cell, on)
    order = list(times)
    found: list[Step] = []
    level: list[int] = order[:1]
    for place, at in enumerate(order[1:], 1):
        old = statistics.median(times[each].us for each in level)
        kind = _away(times[at], old)
        if kind is None:
            level.append(at)
            continue
        later = order[place + 1] if place + 1 < len(order) else None
        if later is not None and _away(times[later], old) != kind:
            continue  # a bad night
        causes = _causes(nights[level[-1]].by[on], nights[at].by[on], cell)
        found.append(Step(cell, on, at, level[-1], kind, old, times[at].us, later is not None, causes))
        level = [at]
    return found


def _away(time: Time, old_us: float) -> Kind | None:
    if time.low > old_us * (1 + TOLERANCE):
        return "slower"
    return "faster" if time.high < old_us * (1 - TOLERANCE) else None


def _causes(before: Measured, now: Measured, cell: Cell) -> list[str]:
    """What else changed between two nights."""
    same = same_kernels(before, now, cell)
    kernel = {True: "the same cubins", False: "another cubin", None: "cubins unknown"}[same]
    return [kernel, *changes(before, now)]


def changes(before: Measured, now: Measured) -> list[str]:
    """Changes of the driver and of tools, in words."""
    old, new = _versions(before), _versions(now)
    return [f"{name} {old[name]} to {new[name]}" for name in new if name in old and old[name] != new[name]]


def _versions(one: Measured) -> Mapping[str, str]:
    return {**({"driver": one.driver} if one.driver else {}), **one.tools}


def same_kernels(before: Measured, now: Measured, cell: Cell) -> bool | None:
    """Whether both nights loaded the same cubins for a cell; None if a file does not say."""
    pair = [[one.kernels.get((cell.source, entry)) for entry in one.times[cell].entries] for one in (before, now)]
    if not all(pair) or any(sha is None for shas in pair for sha in shas):
        return None
    return pair[0] == pair[1]


def bisect(step_cell: Cell, entries: Sequence[str], target: str, first: str, last: str) -> list[str]:
    """The commands that find the commit of a step. With many kernels, or unknown ones, both commits' bundles are
    compared first, and the most suspicious kernel is taken apart."""
    if 0 < len(entries) <= MOST_ENTRIES:
        where = f"--source {step_cell.source}"
        return [f"tilestack bisect {first[:12]} {last[:12]} --commits {where} --entry {entry} --target {target}"
                for entry in dict.fromkeys(entries)]  # fmt: skip
    return [f"git checkout {last[:12]} && nox -s bundles -- --target {target} --base {first[:12]}",
            "tilestack diff build/before build/bundle && tilestack bisect build/before build/bundle"]  # fmt: skip


MOST_ENTRIES = 3
