"""`measured.json`: a row for every entry and shape that was measured, written anew after each, so that a run that was
stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError
from toolchain.files import write_whole

from .catalogue import Contest
from .files import document
from .shapes import Dims, shape_name
from .tasks import Machine, Outcome, Status

FORMAT = 1
FILE = "measured.json"
OWN = "own"  # the symbol of what a launch by name takes of a source's own entries

Key = tuple[str, str, str, str, str, str]  # source, op, dtype, class, symbol, shape


@dataclass(frozen=True)
class Row:
    """An entry on one shape of a contest. `file`: a hash of what was launched, see launched.py; see Outcome for the
    rest."""

    source: str
    op: str
    dtype: str
    shape_class: str
    symbol: str
    shape: str
    file: str
    status: Status
    us: float | None = None
    low: float | None = None
    high: float | None = None
    samples: int = 0
    share: float | None = None
    entry: str = ""
    why: str = ""

    @property
    def key(self) -> Key:
        return (self.source, self.op, self.dtype, self.shape_class, self.symbol, self.shape)

    @classmethod
    def of(cls, source: str, contest: Contest, symbol: str, dims: Dims, file: str, outcome: Outcome) -> Row:
        fields = {name: value for name, value in asdict(outcome).items() if name != "lost"}
        return cls(source, contest.op, contest.dtype, contest.name, symbol, shape_name(dims), file, **fields)


@dataclass
class Measured:
    """The rows of `path` so far. `machine` and `date` (UTC) are None until something is measured."""

    path: Path
    target: str
    machine: Machine | None = None
    date: str = ""
    rows: dict[Key, Row] = field(default_factory=dict)
    _lines: dict[Key, str] = field(default_factory=dict, repr=False)  # each row as JSON: only the new one is made

    @classmethod
    def load(cls, path: Path, target: str) -> Measured:
        """Raises UsageError if the file is of another target or none that we can read; where there is none, no rows."""
        try:
            found: Any = json.loads(path.read_text())
        except FileNotFoundError:
            return cls(path, target)
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} is damaged: {error}", hint=_REMOVE) from error
        try:
            if (found["format"], found["target"]) != (FORMAT, target):
                raise UsageError(
                    f"{path} has format {found['format']} and target {found['target']}, wanted {FORMAT} and {target}",
                    hint=_REMOVE,
                )
            made = cls(path, target, found["machine"] and Machine(**found["machine"]), found["date"])
            for row in found["rows"]:
                made._put(Row(**row))
        except (KeyError, TypeError) as error:
            raise UsageError(f"{path} is damaged: {type(error).__name__}: {error}", hint=_REMOVE) from error
        return made

    def on(self, machine: Machine, date: str) -> None:
        """What is measured from now on is so here. Raises UsageError if the rows so far are of another machine."""
        if self.rows and self.machine is not None and self.machine != machine:
            raise UsageError(f"{self.path} was measured on {self.machine}, this is {machine}", hint=_REMOVE)
        self.machine, self.date = machine, date

    def add(self, row: Row) -> None:
        """Adds a row and writes the file."""
        self._put(row)
        head = {"target": self.target, "machine": self.machine and asdict(self.machine), "date": self.date}
        write_whole(self.path, document(FORMAT, head, list(self._lines.values())), parents=True)

    def forget(self, is_old: Callable[[Row], bool]) -> int:
        """Drops rows, but for the file; returns how many."""
        old = [key for key, row in self.rows.items() if is_old(row)]
        for key in old:
            del self.rows[key], self._lines[key]
        return len(old)

    def of(self, contest: Contest, source: str) -> Iterator[Row]:
        for row in self.rows.values():
            if (row.source, row.op, row.dtype, row.shape_class) == (source, contest.op, contest.dtype, contest.name):
                yield row

    def _put(self, row: Row) -> None:
        self.rows[row.key] = row
        self._lines[row.key] = json.dumps(asdict(row))


_REMOVE = "move it away, or choose another --output"
