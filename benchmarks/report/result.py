"""What a run found: its environment and one row per case, source and peer; written after every case."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from toolchain.errors import UsageError
from toolchain.files import write_whole

from ..cases.roofline import Ceilings, Work

FORMAT = 1
AGAINST = "against"
Status = Literal["ok", "wrong", "error"]
# What must be the same for rows of two runs to stand in one file: the machine, the tree that measures, and the kernels,
# which `bundle` is the hash of, with the tools that compiled them. `changes` is empty for a clean tree.
IDENTITY = ("gpu", "driver", "commit", "changes", "bundle")
UNKNOWN = {
    "driver": "nvidia-smi gives it, where it is installed",
    "commit": "where there is no checkout, `python -m benchmarks stamp` notes it in the bundle that is measured",
}

# In indented JSON, where no string holds a line break: many short lines that say little each.
LIST_OF_NUMBERS = re.compile(r"\[\n([-+.\de,\s]+)\]")


@dataclass(frozen=True)
class Row:
    """Ours from one `source` beside one peer, measured in turns. Times are of one call, in ms: median and 95 %
    interval.

    `status`: `wrong`: an output of ours or of the peer is outside its bound (`detail` says which); `error`: one of them
    did not run, and `traceback` is where it failed.
    Neither has a ratio. What is None was not measured. `ratio`: the peer's time over ours, above 1 where
    we are faster. `best`: the fastest peer of its case and source; never one of `peer_kind` `against`, which are our
    kernels of another bundle. `floor_ms`: the least time that its `nbytes` and
    `flops` take at the measured rates, and `bound` which of the two it is. `copy_ms`: of an op that just moves bytes, a
    copy of as many, in turns with the others; `copy_detail`: why that has no time. `calls`: how many calls a sample
    was; they rotate over `sets` sets of inputs. `entry`: the kernel that was launched, where it is one. `host_us`: of a
    decoding step the host's time to start it, in µs, all that a token costs it; `launch_us`: of that, the driver's to
    launch its graph. `ours_rounds_us`, `peer_rounds_us`: beside another bundle's kernels, the times of one call in each
    round, in µs, so that both lists pair.
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


def _on_one_line(found: re.Match[str]) -> str:
    return f"[{' '.join(found[1].split())}]"


def mark_best(rows: Iterable[Row]) -> list[Row]:
    """The rows with `best` on the fastest right peer of each case and source: the lowest ratio, which is free of what
    differed between runs that were merged; where ours has no time, the lowest time."""
    rows = list(rows)
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row.peer_ms is None or row.peer_kind == AGAINST:
            continue
        place = (row.case, row.source)
        if place not in best or _cost(row) < _cost(best[place]):
            best[place] = row
    return [replace(row, best=best.get((row.case, row.source)) is row) for row in rows]


def _cost(row: Row) -> tuple[bool, float]:
    return (True, row.peer_ms or 0.0) if row.ratio is None else (False, row.ratio)


@dataclass(frozen=True)
class Results:
    """A run. `environment`: what it ran on and with; `ceilings`: the measured rates."""

    environment: Mapping[str, Any]
    ceilings: Mapping[str, float]
    rows: Sequence[Row]

    @property
    def failures(self) -> list[Row]:
        """Rows that fail the run: an output that is wrong, or ours that did not run; not a peer that did not."""
        return [row for row in self.rows if row.status == "wrong" or row.ours_ms is None]

    def slower(self, at_least: float) -> list[Row]:
        """Rows beside another bundle's kernels whose ratio lies below `at_least`, the whole interval, or that have no
        ratio: what could not be compared is no proof."""
        return [row for row in self.rows if row.peer_kind == AGAINST and (row.ratio_high or 0) < at_least]

    @property
    def file_name(self) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", str(self.environment.get("gpu", "unknown")).lower()).strip("-")
        return f"{slug}.json"

    def to_json(self) -> str:
        rows = [asdict(row) for row in self.rows]
        document = {"format": FORMAT, "environment": self.environment, "ceilings": self.ceilings, "rows": rows}
        return LIST_OF_NUMBERS.sub(_on_one_line, json.dumps(document, indent=1)) + "\n"

    def save(self, path: Path) -> None:
        """Raises OSError."""
        write_whole(path, self.to_json(), parents=True)

    @classmethod
    def load(cls, path: Path) -> Results:
        """Raises UsageError if it is missing or is none."""
        try:
            document: Any = json.loads(path.read_text())
            if document["format"] != FORMAT:
                raise UsageError(f"{path}: results of format {document['format']}, this version reads {FORMAT}")
            rows = [Row(**row) for row in document["rows"]]
            return cls(document["environment"], document["ceilings"], rows)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error}", hint="python -m benchmarks gpu writes it") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path}: no results of ours ({type(error).__name__}: {error})") from error


def merge(runs: Sequence[Results], names: Sequence[str]) -> Results:
    """All rows of several runs, as `join` puts them together. Raises UsageError if the runs are not of one GPU, driver,
    tree and bundle, or one does not say of which: such rows say nothing about each other."""
    for run, name in zip(runs, names, strict=True):
        for key in IDENTITY:
            if not run.environment.get(key) and key != "changes":
                raise UsageError(
                    f"{name} does not say its {key}, so its rows cannot be compared", hint=UNKNOWN.get(key)
                )
    return join(runs, names)


def join(runs: Sequence[Results], names: Sequence[str]) -> Results:
    """One file of the parts of one run, which are of one machine and tree, be they known or not; of rows with the same
    case, source and peer the last. Floors are taken anew from the highest rates of all, for one of them may have been
    measured while the GPU ran slower. Raises UsageError if the parts say that something changed meanwhile."""
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
    return Results(environment, rates, mark_best(_floored(row, rates) for row in rows.values()))


def _pytorch(run: Results) -> str | None:
    """Its version, for the peers are its."""
    return run.environment.get("packages", {}).get("torch")


def _floored(row: Row, rates: Mapping[str, float]) -> Row:
    if row.floor_ms is None or not rates:
        return row
    work, ceilings = Work(row.nbytes, row.flops), Ceilings(**rates)
    return replace(row, floor_ms=ceilings.floor_ms(work), bound=ceilings.bound(work))
