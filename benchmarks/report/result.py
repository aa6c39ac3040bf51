"""The results of a run: its environment, and one row per case, source and peer. They are written after every case."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from conformance.results.origin import Origin
from toolchain.errors import UsageError
from toolchain.files import write_whole

from ..cases.roofline import Ceilings, Work
from ..rows import by_rows

FORMAT = 2
KIND = "benchmarks"
AGAINST = "against"
Status = Literal["ok", "wrong", "error"]
# Rows of two runs may only be in one file if these are the same: the machine, the tree that measures, and the kernels.
# `bundle` is a hash of the kernels and the tools that compiled them. `changes` is empty for a clean tree.
IDENTITY = ("gpu", "driver", "commit", "changes", "bundle")
UNKNOWN = {
    "driver": "nvidia-smi gives it, where it is installed",
    "commit": "where there is no checkout, `python -m benchmarks stamp` notes it in the bundle that is measured",
}

# In indented JSON, where no string holds a line break: many short lines that say little each.


@dataclass(frozen=True)
class BenchmarkRow:
    """Our kernels of one `source` beside one peer, measured in turns. Times are those of one call in ms: median and
    95 % interval. None means not measured.

    `status`: `wrong` if an output of ours or of the peer is outside its bound (`detail` says which); `error` if one of
    them did not run (`traceback` says where it failed). Neither has a ratio.
    `ratio`: the peer's time over ours, above 1 if we are faster.
    `best`: True for the fastest peer of its case and source. Peers of `peer_kind` `against` never are: they are our
    kernels of another bundle.
    `floor_ms`: the least time for `nbytes` and `flops` at the measured rates; `bound` says which of the two limits it.
    `copy_ms`: for an op that only moves bytes, the time of a copy of as many bytes, measured in turns with the others;
    `copy_detail`: why there is no such time.
    `calls`: the number of calls in a sample; they rotate over `sets` sets of inputs.
    `entry`: the kernel that was launched, if it is a single one; of a model with several sources' kernels, which ops
    ran with whose.
    `host_us`: the host's time to start a decoding step, in µs; `launch_us`: the driver's part of it, to launch the
    graph. `ours_rounds_us`, `peer_rounds_us`: beside another bundle's kernels, the times of one call in each round, in
    µs, so that both lists pair.
    """

    group: str
    case: str
    source: str
    dtype: str
    shape: str
    dims: Mapping[str, int]
    status: Status
    detail: str = ""
    traceback: str = ""
    axis: str = ""
    entry: str = ""
    ours_ms: float | None = None
    ours_low: float | None = None
    ours_high: float | None = None
    peer: str = ""
    peer_kind: str = ""
    peer_ms: float | None = None
    peer_low: float | None = None
    peer_high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    best: bool = False
    floor_ms: float | None = None
    bound: str = ""
    copy_ms: float | None = None
    copy_low: float | None = None
    copy_high: float | None = None
    copy_detail: str = ""
    nbytes: int = 0
    flops: int = 0
    samples: int = 0
    calls: int = 1
    sets: int = 1
    ours_error: Mapping[str, float] | None = None
    peer_error: Mapping[str, float] | None = None
    host_us: float | None = None
    launch_us: float | None = None
    ours_peak_bytes: int | None = None
    peer_peak_bytes: int | None = None
    model_bytes: int | None = None
    ours_rounds_us: Sequence[float] = field(default_factory=list[float])
    peer_rounds_us: Sequence[float] = field(default_factory=list[float])
    gpu_before: Mapping[str, str] = field(default_factory=dict)
    gpu_after: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.case, self.source, self.peer


def mark_best(rows: Iterable[BenchmarkRow]) -> list[BenchmarkRow]:
    """The rows, with `best` set on the fastest correct peer of each case and source. That is the one with the lowest
    ratio, which does not depend on differences between merged runs; if ours has no time, the one with the lowest
    time."""
    rows = list(rows)
    best: dict[tuple[str, str], BenchmarkRow] = {}
    for row in rows:
        if row.peer_ms is None or row.peer_kind == AGAINST:
            continue
        place = (row.case, row.source)
        if place not in best or _cost(row) < _cost(best[place]):
            best[place] = row
    return [replace(row, best=best.get((row.case, row.source)) is row) for row in rows]


def _cost(row: BenchmarkRow) -> tuple[bool, float]:
    return (True, row.peer_ms or 0.0) if row.ratio is None else (False, row.ratio)


@dataclass(frozen=True)
class Results:
    """The results of a run. `environment`: machine, libraries and commit. `ceilings`: the measured rates. `origin`:
    where the rows come from; None in a file of format 1."""

    environment: Mapping[str, Any]
    ceilings: Mapping[str, float]
    rows: Sequence[BenchmarkRow]
    origin: Origin | None = None

    @property
    def failures(self) -> list[BenchmarkRow]:
        """Rows that fail the run: a wrong output, or a kernel of ours that did not run. A peer that did not run does
        not fail it."""
        return [row for row in self.rows if row.status == "wrong" or row.ours_ms is None]

    def slower(self, at_least: float) -> list[BenchmarkRow]:
        """Rows beside another bundle's kernels whose ratio lies below `at_least` with its whole interval. Rows without
        a ratio count too, because they prove nothing."""
        return [row for row in self.rows if row.peer_kind == AGAINST and (row.ratio_high or 0) < at_least]

    @property
    def file_name(self) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", str(self.environment.get("gpu", "unknown")).lower()).strip("-")
        return f"{slug}.json"

    def to_json(self) -> str:
        """The document that conformance/results.schema.json describes."""
        rows = [asdict(row) for row in self.rows]
        document = {
            "format": FORMAT, "kind": KIND, "environment": self.environment,
            "origin": self.origin.to_json() if self.origin else None, "ceilings": self.ceilings, "rows": rows,
        }  # fmt: skip
        return by_rows(document)

    def save(self, path: Path) -> None:
        """Raises OSError."""
        write_whole(path, self.to_json(), parents=True)

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read a file of results. Raises UsageError if it is missing or not a file of results."""
        try:
            document: Any = json.loads(path.read_text())
            old = document["format"] == 1  # has no origin
            if not old and document["format"] != FORMAT:
                raise UsageError(f"{path}: results of format {document['format']}, this version reads 1 and {FORMAT}")
            if not old and document["kind"] != KIND:
                raise UsageError(f"{path}: results of {document['kind']}, not of the benchmarks")
            origin = None if old or document["origin"] is None else Origin.from_json(document["origin"])
            rows = [BenchmarkRow(**row) for row in document["rows"]]
            return cls(document["environment"], document["ceilings"], rows, origin)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error}", hint="python -m benchmarks gpu writes it") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path}: no results of ours ({type(error).__name__}: {error})") from error


def merge(runs: Sequence[Results], names: Sequence[str]) -> Results:
    """All rows of several runs, put together by `join`. Raises UsageError if the runs differ in GPU, driver, tree or
    bundle, or if one does not state them, because such rows cannot be compared."""
    for run, name in zip(runs, names, strict=True):
        for key in IDENTITY:
            if not run.environment.get(key) and key != "changes":
                raise UsageError(
                    f"{name} does not say its {key}, so its rows cannot be compared", hint=UNKNOWN.get(key)
                )
    return join(runs, names)


def join(runs: Sequence[Results], names: Sequence[str]) -> Results:
    """Put the parts of one run together. Of rows with the same case, source and peer, the last one is kept. Floors are
    computed again from the highest rates of all parts, because one part may have been measured while the GPU was
    slower. The parts need not state their machine and tree; raises UsageError if they state different ones."""
    first = runs[0]
    for other, name in zip(runs[1:], names[1:], strict=True):
        pairs = {key: (first.environment.get(key), other.environment.get(key)) for key in IDENTITY}
        pairs["PyTorch"] = (_pytorch(first), _pytorch(other))
        for key, (a, b) in pairs.items():
            if a != b:
                raise UsageError(f"{name} has {key} {b!r}, {names[0]} {a!r}: their rows cannot be compared")
    others = [(name, run.environment.get("against", {})) for run, name in zip(runs, names, strict=True)]
    against: dict[str, Any] = {}
    for name, found in others:
        for called, other in found.items():
            if against.setdefault(called, other) != other:
                raise UsageError(f"{name} has another bundle called {called!r} than the runs before it")
    rows = {row.key: row for run in runs for row in run.rows}
    dates = ", ".join(dict.fromkeys(str(run.environment.get("date", "")) for run in runs))
    clocks = [run.environment.get("sm_clock_mhz") for run in runs]
    seen = [clock for clock in clocks if clock]
    environment = {**runs[-1].environment, "date": dates}
    if against:
        environment["against"] = against
    if seen:
        environment["sm_clock_mhz"] = [min(low for low, _ in seen), max(high for _, high in seen)]
    rates = {name: max(run.ceilings[name] for run in runs) for name in runs[0].ceilings}
    made = [run.origin for run in runs if run.origin]
    origin = made[-1].with_kernels(kernel for each in made for kernel in each.kernels) if made else None
    return Results(environment, rates, mark_best(_floored(row, rates) for row in rows.values()), origin)


def _pytorch(run: Results) -> str | None:
    """The version of PyTorch in a run, since the peers depend on it."""
    return run.environment.get("packages", {}).get("torch")


def _floored(row: BenchmarkRow, rates: Mapping[str, float]) -> BenchmarkRow:
    if row.floor_ms is None or not rates:
        return row
    work, ceilings = Work(row.nbytes, row.flops), Ceilings(**rates)
    return replace(row, floor_ms=ceilings.floor_ms(work), bound=ceilings.bound(work))
