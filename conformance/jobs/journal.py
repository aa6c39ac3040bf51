"""What a run of the matrix has found so far, on disk: a line of JSON for each row as its cell ends.

Every process appends its own rows, each with one write to a file opened for appending: lines of two processes never
mix, and a process that is killed leaves at most one incomplete line, the file's last. The first line says what is run,
so that only the same run is continued.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolchain.bundles.bundle import MANIFEST, Bundle
from toolchain.errors import UsageError
from toolchain.files import write_whole
from toolchain.runtime.executor import Loaded

from ..results.result import CellResult, row_of

FILE = "journal.jsonl"
CODE = ("conformance", "gpt", "toolchain")  # folders whose code decides what a row says
JobKey = tuple[str, int]  # the executor's name, the job's number


@dataclass(frozen=True)
class Record:
    """What a journal holds: `run` describes the run; rows by job, which jobs have ended, the kernels that ran, and why
    jobs were tried again."""

    run: Mapping[str, str]
    rows: Mapping[JobKey, Sequence[CellResult]] = field(default_factory=dict)
    ended: frozenset[JobKey] = frozenset()
    kernels: frozenset[Loaded] = frozenset()
    retries: Mapping[JobKey, Sequence[str]] = field(default_factory=dict)

    def of(self, key: JobKey) -> Sequence[CellResult]:
        return self.rows.get(key, ())


@dataclass(frozen=True)
class Journal:
    """The journal of one run. Only the path passes from one process to another."""

    path: Path

    def start(self, run: Mapping[str, str], keep: Record | None = None) -> None:
        """Begins the file anew, with all that `keep` holds: rows of a job that has not ended count until they are made
        again."""
        keep = keep or Record(run)
        lines = [_line({"run": dict(run)})]
        lines += [_line({"kernel": kernel}) for kernel in sorted(keep.kernels)]
        lines += [_retry_line(key, why) for key, reasons in keep.retries.items() for why in reasons]
        for key, rows in keep.rows.items():
            lines += [_row_line(key, row) for row in rows]
        lines += [_end_line(key) for key in sorted(keep.ended)]
        write_whole(self.path, b"".join(lines), parents=True)

    def begin(self, key: JobKey) -> None:
        """Writes that a job starts, perhaps not for the first time."""
        self._append(_line({"executor": key[0], "job": key[1], "begin": True}))

    def add(self, key: JobKey, row: CellResult) -> None:
        """Writes a row of a job."""
        self._append(_row_line(key, row))

    def ran(self, kernels: Iterable[Loaded]) -> None:
        """Writes which kernels a row launched. One that stands there already may come again."""
        self._append(b"".join(_line({"kernel": kernel}) for kernel in kernels))

    def retry(self, key: JobKey, why: str) -> None:
        """Writes that a job is tried again, and after which error of the machine."""
        self._append(_retry_line(key, why))

    def end(self, key: JobKey) -> None:
        """Writes that a job has no more rows."""
        self._append(_end_line(key))

    def _append(self, line: bytes) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def read(self) -> Record | None:
        """What was written so far, or None if there is no journal. An incomplete last line is left out. A cell that ran
        again has its last row, but a wrong number stays. Raises UsageError if the file is not a journal."""
        try:
            *lines, _ = self.path.read_bytes().split(b"\n")  # behind the last line break: nothing, or a part of a line
        except FileNotFoundError:
            return None
        rows: dict[JobKey, _Rows] = {}
        retries: dict[JobKey, list[str]] = {}
        ended: set[JobKey] = set()
        kernels: set[Loaded] = set()
        try:
            documents: list[dict[str, Any]] = [json.loads(line) for line in lines]
            run = {str(name): str(value) for name, value in documents[0]["run"].items()}
            for document in documents[1:]:
                if "kernel" in document:
                    kernels.add(Loaded(*map(str, document["kernel"])))
                    continue
                key = (str(document["executor"]), int(document["job"]))
                if "row" in document:
                    rows.setdefault(key, _Rows()).put(row_of(document["row"]))
                elif "begin" in document:
                    rows.setdefault(key, _Rows()).seen.clear()
                elif "retry" in document:
                    retries.setdefault(key, []).append(str(document["retry"]))
                else:
                    ended.add(key)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            why = f"{self.path}: not a journal of the matrix ({type(error).__name__}: {error})"
            raise UsageError(why, hint="run without --resume") from error
        found = {key: list(of.kept.values()) for key, of in rows.items() if of.kept}
        return Record(run, found, frozenset(ended), frozenset(kernels), retries)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def check_same(journal: Journal, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raises UsageError if a journal is of another run: its rows would be mixed with those of other kernels, inputs or
    cases."""
    if differ := [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]:
        words = "; ".join(f"{name}: {_brief(found.get(name))} then, {_brief(wanted.get(name))} now" for name in differ)
        raise UsageError(
            f"{journal.path} is of another run, which cannot be resumed with this one: {words}",
            hint="repeat that run's bundle and options, or run without --resume",
        )


def _brief(value: str | None) -> str:
    return "all" if not value else value if len(value) <= 60 else f"{value[:57]}..."


def bundle_hash(bundle: Bundle) -> str:
    """Of the manifest, which holds the sha256 of every file."""
    return hashlib.sha256((bundle.root / MANIFEST).read_bytes()).hexdigest()[:16]


@functools.cache
def code_hash() -> str:
    """The hash of the code that results depend on: inputs, references, comparison, interpreter. It is computed once
    in a process, because the process goes on with the code that it loaded, even if somebody edits the files."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[2]
    for folder in CODE:
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in (".py", ".toml")):
            digest.update(f"{path.relative_to(root)}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass
class _Rows:
    """The rows of a job while a journal is read. `seen`: how many of a cell and shape came since the job began last."""

    kept: dict[tuple[str, str, int], CellResult] = field(default_factory=dict[tuple[str, str, int], CellResult])
    seen: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def put(self, row: CellResult) -> None:
        """Keeps a row in place of the one of an earlier try, unless that had a wrong number."""
        place = (row.cell, row.shape)
        key = (*place, self.seen[place])
        self.seen[place] += 1
        if key not in self.kept or self.kept[key].status != "failed":
            self.kept[key] = row


def _retry_line(key: JobKey, why: str) -> bytes:
    return _line({"executor": key[0], "job": key[1], "retry": why})


def _row_line(key: JobKey, row: CellResult) -> bytes:
    return _line({"executor": key[0], "job": key[1], "row": asdict(row)})


def _end_line(key: JobKey) -> bytes:
    return _line({"executor": key[0], "job": key[1]})


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"
