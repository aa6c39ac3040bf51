"""The files of results that a report is made of: of the matrix and of the benchmarks, of one machine or several."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from conformance.results.origin import Origin
from conformance.results.result import FORMAT, Results
from toolchain.errors import UsageError

BENCHMARKS = "benchmarks"
NEEDED = (
    "group", "case", "source", "dtype", "status", "detail", "entry", "ours_ms", "ours_low", "ours_high", "floor_ms",
    "bound", "nbytes", "flops", "peer", "peer_kind", "ratio", "ratio_low", "ratio_high", "best",
)  # fmt: skip
NAMES = {"cpu": "CPU interpreter", "native": "C++ tools"}  # by the target of a row


@dataclass(frozen=True)
class Times:
    """A file of the benchmarks as JSON: `rows` as benchmarks.report.result.BenchmarkRow has them, which is not imported
    because an installed wheel has no benchmarks."""

    environment: Mapping[str, Any]
    ceilings: Mapping[str, float]
    rows: Sequence[Mapping[str, Any]]
    origin: Origin | None

    @property
    def target(self) -> str:
        return str(self.environment.get("target", ""))

    @property
    def machine(self) -> str:
        return str(self.environment.get("gpu", "unknown GPU"))


@dataclass(frozen=True)
class Run:
    """One file of results. `name`: the file's, for people. One of `matrix` and `bench` is set."""

    name: str
    matrix: Results | None = None
    bench: Times | None = None

    @property
    def results(self) -> Results | Times:
        found = self.matrix or self.bench
        assert found is not None
        return found

    @property
    def origin(self) -> Origin | None:
        return self.results.origin

    @property
    def environment(self) -> Mapping[str, Any]:
        return self.results.environment

    @property
    def date(self) -> str:
        """When it began, or what the file says of it; empty in old files of the matrix."""
        return self.origin.date if self.origin else str(self.environment.get("date", ""))

    @property
    def machines(self) -> list[str]:
        """The names of what it ran on."""
        if self.bench:
            return [self.bench.machine]
        assert self.matrix
        return list(dict.fromkeys(machine(row.executor, row.target) for row in self.matrix.rows))


def machine(executor: str, target: str) -> str:
    """What a row ran on, without the number that a GPU has there: `cuda:1 NVIDIA H200 sm_90` is `NVIDIA H200`."""
    if target in NAMES:
        return NAMES[target]
    words = executor.split()
    if words and words[0].startswith("cuda:"):
        words = words[1:]
    if words and words[-1].startswith("sm_"):
        words = words[:-1]
    return " ".join(words) or executor


def load(paths: Sequence[Path]) -> list[Run]:
    """The runs, the oldest first; those without a date come first. Raises UsageError for what is no file of results."""
    return sorted((_load(path) for path in paths), key=lambda run: run.date)


def _load(path: Path) -> Run:
    document: Any = None
    with suppress(OSError, ValueError, RecursionError):  # Results.load says what is wrong
        document = json.loads(path.read_text())
    if isinstance(document, dict) and (document.get("kind") == BENCHMARKS or "ceilings" in document):
        return Run(str(path), bench=_times(path, document))
    return Run(str(path), matrix=Results.load(path))


def _times(path: Path, document: Any) -> Times:
    try:
        if document["format"] not in (1, FORMAT):
            raise UsageError(f"{path}: results of format {document['format']}, this version reads 1 and {FORMAT}")
        origin = Origin.from_json(document["origin"]) if document.get("origin") else None
        rows = [dict(row) for row in document["rows"]]
        for row in rows:
            if missing := [name for name in NEEDED if name not in row]:
                raise KeyError(", ".join(missing))
        return Times(dict(document["environment"]), dict(document["ceilings"]), rows, origin)
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: no results of the benchmarks ({type(error).__name__}: {error})") from error


def table(path: Path | None, rows: str, writer: str) -> Any:
    """Reads a JSON file with a list `rows`, which the tool `writer` wrote. Returns None if no file is given. Raises
    UsageError."""
    if path is None:
        return None
    try:
        found: Any = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(cast("dict[str, Any]", found).get(rows), list):
        raise UsageError(f"{path} has no list {rows!r}", hint=f"it should be what `{writer}` writes")
    return cast("Any", found)
