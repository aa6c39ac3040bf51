"""One measurement of a cell: its rounds beside the base's, and the state of the GPU, taken from benchmark results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.report.result import AGAINST, BenchmarkRow, Results
from toolchain.errors import UsageError

from .statistics import Floats, log_changes

Key = tuple[str, str]  # case, source


@dataclass(frozen=True)
class Measurement:
    """`ours_us`, `base_us`: the time of one call in each round, in µs; empty if `failure` says why there are none.
    `wrong`: an output was outside its bound. `swapped`: the base's bundle was the measured one, and ours stood beside
    it. `states`: what nvidia-smi said before and after."""

    case: str
    source: str
    ours_us: Sequence[float]
    base_us: Sequence[float]
    failure: str = ""
    wrong: bool = False
    swapped: bool = False
    states: Sequence[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])

    @property
    def key(self) -> Key:
        return self.case, self.source

    @property
    def log_changes(self) -> Floats:
        return log_changes(np.asarray(self.ours_us, float), np.asarray(self.base_us, float))


def measurements(results: Results, other: str, *, swapped: bool = False) -> dict[Key, Measurement]:
    """All cells of a run of `benchmarks gpu --against OTHER=DIR`. A row that has no comparison becomes a measurement
    with a failure. Raises UsageError if the run was not compared with a bundle of that name."""
    if other not in results.environment.get("against", {}):
        raise UsageError(
            f"the results are of no run beside a bundle called {other!r}",
            hint=f"python -m benchmarks gpu --bundle NEW --against {other}=OLD --peers ''",
        )
    found: dict[Key, Measurement] = {}
    for row in results.rows:
        key = row.case, row.source
        compared = row.peer_kind == AGAINST and row.peer == f"{other} {row.source}"
        if compared:
            found[key] = _measurement(row, swapped)
        else:
            found.setdefault(key, _failed(row, f"the other bundle has no kernels of source {row.source}"))
    return found


def _failed(row: BenchmarkRow, why: str, *, swapped: bool = False) -> Measurement:
    return Measurement(row.case, row.source, [], [], why, row.status == "wrong", swapped)


def _measurement(row: BenchmarkRow, swapped: bool) -> Measurement:
    if row.status != "ok":
        return _failed(row, f"{row.status}: {row.detail}", swapped=swapped)
    if not row.ours_rounds_us or len(row.ours_rounds_us) != len(row.peer_rounds_us):
        return _failed(row, "the results hold no rounds of both sides", swapped=swapped)
    ours, base = row.ours_rounds_us, row.peer_rounds_us
    if swapped:
        ours, base = base, ours
    return Measurement(
        row.case, row.source, ours, base, swapped=swapped, states=[row.gpu_before, row.gpu_after]
    )  # fmt: skip


def highest_clock(found: Mapping[Key, Measurement]) -> float:
    """The highest SM clock that a run has seen, MHz; 0 if none was read."""
    clocks = [number(state, "sm_clock_mhz") for one in found.values() for state in one.states]
    return max((clock for clock in clocks if clock is not None), default=0.0)


def number(state: Mapping[str, str], name: str) -> float | None:
    """A reading of nvidia-smi, or None where it gave none (`[N/A]`)."""
    try:
        return float(state[name])
    except (KeyError, ValueError):
        return None
