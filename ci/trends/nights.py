"""Nights: what the GPUs of one commit took on one day, from files of results of the matrix and of the benchmarks."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.results.origin import Origin
from toolchain.errors import UsageError

from ..report.data import chosen
from ..report.runs import Run, Times, load, machine

DATE = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)")
Machine = tuple[str, str]  # a GPU's name, and its target


@dataclass(frozen=True, order=True)
class Cell:
    """What was timed: `name` is a cell of the matrix with its shape, or a benchmark's case."""

    name: str
    source: str


@dataclass(frozen=True)
class Time:
    """The median of one launch with its 95 % interval, µs. `entries`: the symbols of what was launched, if the file
    says that."""

    us: float
    low: float
    high: float
    entries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measured:
    """What one GPU took in one file. `tools`: versions by name. `kernels`: sha256 by source and symbol, of what was
    loaded; empty if the file does not say."""

    day: str
    minute: str
    commit: str
    on: Machine
    driver: str
    tools: Mapping[str, str]
    kernels: Mapping[tuple[str, str], str]
    times: Mapping[Cell, Time]


@dataclass
class Night:
    """All that was measured of one commit on one day. `by`: for each GPU, files of the same night put together."""

    day: str
    minute: str
    commit: str
    by: dict[Machine, Measured] = field(default_factory=dict)

    def add(self, one: Measured) -> None:
        old = self.by.get(one.on)
        self.minute = min(self.minute, one.minute)
        if old is not None:
            one = Measured(one.day, one.minute, one.commit, one.on, one.driver, {**old.tools, **one.tools},
                           {**old.kernels, **one.kernels}, {**old.times, **one.times})  # fmt: skip
        self.by[one.on] = one


def nights(paths: Sequence[Path], last: int = 0) -> list[Night]:
    """The nights of files and of folders with such files, the oldest first. `last`: only so many. Raises UsageError for
    a file that is none of ours, or does not say its date or commit, and if no file has a time of a GPU."""
    files = [file for path in paths for file in _files(path)]
    made: dict[tuple[str, str], Night] = {}
    for run in load(files):
        for one in _measured(run):
            key = (one.day, one.commit)
            made.setdefault(key, Night(one.day, one.minute, one.commit)).add(one)
    if not made:
        raise UsageError(f"{', '.join(map(str, paths))}: no time of a GPU in {len(files)} files of results",
                         hint="tilestack matrix run on a GPU writes a results.json with times")  # fmt: skip
    found = sorted(made.values(), key=lambda night: (night.day, night.minute))
    return found[-last:] if last else found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob("*.json"))
    if not found:
        raise UsageError(f"{path}: no night in it", hint="it should have files of results, in whatever folders")
    return found


def _measured(run: Run) -> Iterator[Measured]:
    date, commit = DATE.search(run.date), _commit(run)
    if date is None or not commit:
        raise UsageError(f"{run.name} does not say its {'commit' if date else 'date'}, so it is no night's")
    times = _benchmarks(run.bench) if run.bench else _matrix(run)
    for on, found in times.items():
        yield Measured(date[1], date[2], commit, on, _driver(run, on), _tools(run), _kernels(run.origin, on[1]), found)


def _commit(run: Run) -> str:
    """Of the kernels, which may be older than the code that measured them."""
    bundle = run.origin.bundle.get("commit", "") if run.origin else run.environment.get("bundle_commit", "")
    return str(bundle or (run.origin.commit if run.origin else run.environment.get("commit", "")))


def _matrix(run: Run) -> dict[Machine, dict[Cell, Time]]:
    found: dict[Machine, dict[Cell, Time]] = {}
    for row in run.matrix.rows if run.matrix else ():
        if row.time_us is None or not row.target.startswith("sm_"):
            continue
        low, high = row.time_low_us or row.time_us, row.time_high_us or row.time_us
        cell = Cell(f"{row.op} {row.dtype} {row.shape}", row.source)
        on = (machine(row.executor, row.target), row.target)
        found.setdefault(on, {})[cell] = Time(row.time_us, low, high, tuple(row.entries))
    return found


def _benchmarks(bench: Times) -> dict[Machine, dict[Cell, Time]]:
    found: dict[Cell, Time] = {}
    for row, _ in chosen(bench.rows):
        if row["ours_ms"] is not None:
            us = [1e3 * (row[name] or row["ours_ms"]) for name in ("ours_ms", "ours_low", "ours_high")]
            entries = tuple(filter(None, str(row["entry"]).split(", ")))
            found[Cell(str(row["case"]), str(row["source"]))] = Time(us[0], us[1], us[2], entries)
    return {(bench.machine, bench.target): found} if found else {}


def _driver(run: Run, on: Machine) -> str:
    if run.origin:
        return next((str(d.get("driver", "")) for d in run.origin.devices if d.get("gpu") == on[0]), "")
    return str(run.environment.get("driver", ""))


def _tools(run: Run) -> dict[str, str]:
    """The versions of the tools that compiled the kernels, and of those who measured beside them."""
    tools: Any = run.origin.tools if run.origin else run.environment.get("tools", {})
    packages: Any = run.origin.host.get("packages", {}) if run.origin else run.environment.get("packages", {})
    versions = {str(name): str(tool["version"]) for name, tool in tools.items()}
    return {**versions, **({"torch": str(packages["torch"])} if run.bench and "torch" in packages else {})}


def _kernels(origin: Origin | None, target: str) -> dict[tuple[str, str], str]:
    return {(k.source, k.symbol): k.sha256 for k in (origin.kernels if origin else ()) if k.target == target}


def history(file: Path, folder: Path) -> list[Path]:
    """Writes each version of a file that git has, also under older names, to a folder. Raises UsageError."""
    log = _git(file.parent, "log", "--follow", "--name-only", "--diff-filter=d", "--format=commit %H", "--", file.name)
    made: list[Path] = []
    commit = ""
    for line in filter(None, log.splitlines()):
        if line.startswith("commit "):
            commit = line.removeprefix("commit ")
            continue
        made.append(folder / f"{commit[:12]}-{Path(line).name}")
        made[-1].write_text(_git(file.parent, "show", f"{commit}:{line}"))
    if not made:
        raise UsageError(f"{file}: git knows no version of it", hint="a file of results that is committed")
    return made


def subjects(repository: Path, first: str, last: str) -> list[tuple[str, str]] | None:
    """The commits after `first` up to `last`, the newest first, with their subjects; None if git does not know one of
    the two here."""
    try:
        log = _git(repository, "log", "--format=%h %s", f"{first}..{last}")
    except UsageError:
        return None
    return [(sha, subject) for sha, _, subject in (line.partition(" ") for line in log.splitlines())]


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"git cannot be started: {error}") from error
    if done.returncode:
        raise UsageError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def with_history(paths: Iterable[Path], files: Sequence[Path], last: int) -> list[Night]:
    """The nights of files, folders, and of all versions of committed files. Raises UsageError."""
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        versions = [version for file in files for version in history(file, Path(folder))]
        return nights([*paths, *versions], last)
