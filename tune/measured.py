"""`measured.json`: a row for every entry and shape that was measured. The file is rewritten after each measurement, so
that an interrupted run can continue. Each row has a hash of the launched code; rows of older code are ignored."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.caching import cache
from toolchain.errors import BundleError, UsageError
from toolchain.files import write_whole

from .catalogue import OWN as OWN_FOLDER
from .catalogue import VARIANTS, Catalogue, Contest, document
from .spaces import Dims, shape_name
from .worker import Machine, Outcome, Status

FORMAT = 1
FILE = "measured.json"
OWN = "own"  # stands for the symbol of the own entry that a normal launch chooses

Key = tuple[str, str, str, str, str, str]  # source, op, dtype, class, symbol, shape


@dataclass(frozen=True)
class EntryMeasurement:
    """The measurement of an entry on one shape of a contest. `file`: a hash of the launched code, see Launched. For the
    other fields see Outcome."""

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
    def of(
        cls, source: str, contest: Contest, symbol: str, dims: Dims, file: str, outcome: Outcome
    ) -> EntryMeasurement:
        fields = {name: value for name, value in asdict(outcome).items() if name != "lost"}
        return cls(source, contest.op, contest.dtype, contest.name, symbol, shape_name(dims), file, **fields)


@dataclass
class Measured:
    """The rows of `path` so far. `machine` and `date` (UTC) are None until something is measured."""

    path: Path
    target: str
    machine: Machine | None = None
    date: str = ""
    rows: dict[Key, EntryMeasurement] = field(default_factory=dict)
    _lines: dict[Key, str] = field(
        default_factory=dict, repr=False
    )  # each row as JSON text, so that a save only formats the new one

    @classmethod
    def load(cls, path: Path, target: str) -> Measured:
        """Read the rows of a file; none if it does not exist. Raises UsageError if it is for another target, or cannot
        be read."""
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
                made._put(EntryMeasurement(**row))
        except (KeyError, TypeError) as error:
            raise UsageError(f"{path} is damaged: {type(error).__name__}: {error}", hint=_REMOVE) from error
        return made

    def on(self, machine: Machine, date: str) -> None:
        """Set the machine of the rows to come. Raises UsageError if the rows so far are from another machine."""
        if self.rows and self.machine is not None and self.machine != machine:
            raise UsageError(f"{self.path} was measured on {self.machine}, this is {machine}", hint=_REMOVE)
        self.machine, self.date = machine, date

    def add(self, row: EntryMeasurement) -> None:
        """Adds a row and writes the file."""
        self._put(row)
        head = {"target": self.target, "machine": self.machine and asdict(self.machine), "date": self.date}
        write_whole(self.path, document(FORMAT, head, list(self._lines.values())), parents=True)

    def forget(self, is_old: Callable[[EntryMeasurement], bool]) -> int:
        """Drop the rows for which `is_old` is true, without writing the file. Returns how many there were."""
        old = [key for key, row in self.rows.items() if is_old(row)]
        for key in old:
            del self.rows[key], self._lines[key]
        return len(old)

    def of(self, contest: Contest, source: str) -> Iterator[EntryMeasurement]:
        for row in self.rows.values():
            if (row.source, row.op, row.dtype, row.shape_class) == (source, contest.op, contest.dtype, contest.name):
                yield row

    def _put(self, row: EntryMeasurement) -> None:
        self.rows[row.key] = row
        self._lines[row.key] = json.dumps(asdict(row))


_REMOVE = "move it away, or choose another --output"


_WHOLE = "tilestack tune --phase compile writes it; measuring and applying want the whole folder"


@dataclass(frozen=True)
class Launched:
    """The bundles of a search: the compiled `variants`, and the sources' `own` entries, both for `target`."""

    target: str
    variants: Bundle
    own: Bundle

    @classmethod
    def load(cls, folder: Path, catalogue: Catalogue) -> Launched:
        """Open the bundles of a folder. Raises BundleError if one is missing, or lacks a variant of the catalogue."""
        try:
            found = cls(catalogue.target, Bundle.load(folder / VARIANTS), Bundle.load(folder / OWN_FOLDER))
        except BundleError as error:
            raise BundleError(error.args[0], hint=_WHOLE) from error
        compiled = [(c.spec.source, c.spec.symbol) for c in catalogue.candidates if c.status == "compiled"]
        if lacking := [name for name in compiled if name not in found._hashes]:
            first = "/".join(lacking[0])
            raise BundleError(f"{found.variants.root} lacks {len(lacking)} variants, the first {first}", hint=_WHOLE)
        return found

    def file(self, source: str, op: str, dtype: str, symbol: str) -> str:
        """A hash of the code that is launched for a row; "" if there is no such entry."""
        if symbol != OWN:
            return self._hashes.get((source, symbol), "")
        own = self.own.entries_of(source, op, dtype)
        return (
            cache.key(*map(self._hash, own)) if own else ""
        )  # with different entries in the bundle, a launch may choose another one

    def is_old(self, row: EntryMeasurement) -> bool:
        """True if the entry's code has changed since the row was measured. False if the entry is not here at all."""
        now = self.file(row.source, row.op, row.dtype, row.symbol)
        return bool(now) and now != row.file

    def forget_old(self, measured: Measured) -> int:
        """Drop the rows that were measured with other code. Returns how many there were."""
        return measured.forget(self.is_old)

    @functools.cached_property
    def _hashes(self) -> dict[tuple[str, str], str]:
        return {(e.spec.source, e.spec.symbol): self._hash(e) for e in self.variants.entries}

    def _hash(self, entry: BundleEntry) -> str:
        """A hash of the code, the grid's expressions and the conditions on sizes."""
        code = entry.cubins.get(self.target, entry.code).sha256
        return cache.key(code, *entry.spec.grid, *entry.spec.where)
