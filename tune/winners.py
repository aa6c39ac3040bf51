"""Decides contests. Each entry that was right on all shapes gets a score: the geometric mean of its times, each divided
by the best time of that shape. The lowest score wins."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from .catalogue import Candidate, Catalogue, Contest
from .measured import OWN, EntryMeasurement, Measured
from .spaces import shape_name

Times = Mapping[str, float]  # microseconds by shape
GAIN = 0.01  # a variant must be faster than the source's own entries by this share to get a row


@dataclass(frozen=True)
class Placed:
    """An entry that was right on all shapes. `score` is 1 if it is the best on each shape."""

    symbol: str
    times_us: Times
    score: float


@dataclass(frozen=True)
class Winner:
    """The outcome of a contest for one source. `candidate` is None if no variant was right, or none was faster than the
    source's own entries by GAIN. `own`: the times of these entries, if they were right."""

    contest: Contest
    source: str
    candidate: Candidate | None
    first: Placed | None
    runner_up: Placed | None
    own: Placed | None
    entrants: int

    @property
    def slower_on(self) -> list[str]:
        """The shapes on which the winner is slower than the source's own entries."""
        if self.candidate is None or self.first is None or self.own is None:
            return []
        own = self.own.times_us
        return [shape for shape, us in self.first.times_us.items() if us > (1 + GAIN) * own[shape]]


@dataclass(frozen=True)
class Unfinished:
    """A contest that cannot be decided yet: `missing` measurements are lacking."""

    contest: Contest
    source: str
    missing: int


def decide(
    catalogue: Catalogue, measured: Measured, contest: Contest, source: str, without: Collection[str] = ()
) -> Winner | Unfinished | None:
    """The outcome of a contest for one source; None if it has no entrant. `without`: symbols that must not win."""
    entrants = {c.spec.symbol: c for c in catalogue.entrants(contest, source) if c.spec.symbol not in without}
    if not entrants:
        return None
    shapes = [shape_name(dims) for dims in contest.shapes]
    rows = {(row.symbol, row.shape): row for row in measured.of(contest, source)}
    times: dict[str, Times] = {}
    missing = 0
    for symbol in (OWN, *entrants):
        found = [rows[symbol, shape] for shape in shapes if (symbol, shape) in rows]
        seen = [row for row in found if _tells(row)]
        if any(row.status != "ok" for row in seen):
            continue  # it cannot win, whatever its other times are
        missing += len(shapes) - len(seen)
        times[symbol] = {row.shape: row.us for row in seen if row.us is not None}
    if missing:
        return Unfinished(contest, source, missing)
    placed = _placed(times, shapes)
    variants = [entry for entry in placed if entry.symbol != OWN]
    own = next((entry for entry in placed if entry.symbol == OWN), None)
    first, runner_up = (*variants, None, None)[:2]
    fastest = first is not None and (own is None or (1 + GAIN) * first.score <= own.score)
    candidate = entrants[first.symbol] if first and fastest else None
    return Winner(contest, source, candidate, first, runner_up, own, len(entrants))


def _tells(row: EntryMeasurement) -> bool:
    """True if the row decides about the entry. An error of the source's own entries does not, because the machine may
    have caused it, and a variant can only win by comparison with them."""
    return row.status != "unprepared" and not (row.symbol == OWN and row.status == "error")


def _placed(times: Mapping[str, Times], shapes: Sequence[str]) -> list[Placed]:
    """The best first; entries with equal scores in the order of their names."""
    best = {shape: min(found[shape] for found in times.values()) for shape in shapes} if times else {}

    def score(found: Times) -> float:
        return math.exp(math.fsum(math.log(found[shape] / best[shape]) for shape in shapes) / len(shapes))

    placed = [Placed(symbol, found, score(found)) for symbol, found in times.items()]
    return sorted(placed, key=lambda entry: (entry.score, entry.symbol))
