"""The tables of entries: `entries/portable.toml` for every target, `entries/<target>.toml` for one.

All kernel sources read the same tables; a source may take only the rows that name it (sources.toml). Entries of a
target's own table come first, those that were tuned before those that were written, then the portable ones: a launch
takes the first whose conditions hold. An entry is compiled for the targets of its table alone. The head of
portable.toml describes the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from .. import knobs
from ..errors import UsageError
from ..tables import (
    Check,
    check_keys,
    header,
    integers,
    is_number,
    is_table,
    natural,
    one_of,
    parse_table,
    place,
    read_text,
    table_of,
    tables,
    text,
    texts,
)  # fmt: skip
from .entry import EntrySpec
from .fastest import Fastest, Pick
from .op import ops
from .policy import Policy
from .rows import specs_of
from .targets import targets

PORTABLE = "portable"
DEFAULT = "default"  # the name of the portable table's policy, among those of targets

times = table_of(is_number, "times in microseconds")
hashes = table_of(lambda value: isinstance(value, str), "hashes")

# The keys of a row, in the order in which they are written.
ROW: Mapping[str, Check] = {
    "ops": texts, "dtypes": texts, "sources": texts, "variant": text, "kernel": text,
    "each": table_of(lambda value: isinstance(value, list), "lists of integers"),
    "constants": integers, "sizes": integers, "only": one_of("sized", "any"),
    "hints": table_of(lambda _: True, "hints"), "aligned": texts, "contiguous": texts,
    "multiples": integers, "where": texts, "tiles": text, "rounds": natural, "grid": texts,
}  # fmt: skip
REQUIRED = ("ops", "dtypes", "grid")
OPTIONAL = tuple(key for key in ROW if key not in REQUIRED)
# The keys of a row that `tilestack tune` wrote, for one op and one class of shapes.
TUNED: Mapping[str, Check] = {
    "op": text, "class": text,
    **{key: ROW[key] for key in ("dtypes", "sources", "variant", "kernel", "constants", "sizes", "only", "hints",
                                 "aligned", "multiples", "where", "grid")},
    "measured": is_table, "predicted": is_table,
}  # fmt: skip
BELOW = ("measured", "predicted")  # the table behind a row's own keys: each row has one of them
TUNED_OPTIONAL = ("kernel", "constants", "sizes", "only", "hints", "aligned", "multiples", "where", *BELOW)
# What was measured: times in microseconds by shape; `own_us` is what the entries that are not tuned took. `code`: what
# was compiled, as tuned.code_hash has it.
MEASURED: Mapping[str, Check] = {
    "gpu": text, "driver": text, "date": text, "source": text, "dtype": text, "space": text, "us": times,
    "runner_up": text, "runner_up_us": times, "own_us": times, "tools": hashes, "code": hashes,
}  # fmt: skip
MEASURED_OPTIONAL = ("runner_up", "runner_up_us", "own_us")
# Of a row that nobody measured: microseconds that were computed for `gpu`, by its `rates`. No `own_us` stands where
# the entries that are not tuned spill much.
PREDICTED: Mapping[str, Check] = {"gpu": text, "rates": text, "space": text, "us": times, "own_us": times}
PREDICTED_OPTIONAL = ("own_us",)
_AGAIN = "tilestack tune writes these rows; see docs/tuning.md"


@dataclass(frozen=True)
class TunedRow:
    """The `number`-th tuned row of `path`. `shape_class`: the name that the search spaces give to the sizes that it was
    tuned for. `table`: the row itself."""

    path: Path
    number: int
    target: str
    table: Mapping[str, Any]

    @property
    def op(self) -> str:
        return self.table["op"]

    @property
    def shape_class(self) -> str:
        return self.table["class"]

    @property
    def sources(self) -> Sequence[str]:
        return self.table["sources"]

    @property
    def predicted(self) -> bool:
        """True if nobody measured it: it has [tuned.predicted] instead of [tuned.measured]."""
        return "predicted" in self.table

    @property
    def name(self) -> str:
        """For people: `linear bf16 m16 for sm_90 (mlir, py)`, with `, predicted` behind it where it is."""
        dtypes, end = ", ".join(self.table["dtypes"]), ", predicted" * self.predicted
        return f"{self.op} {dtypes} {self.shape_class} for {self.target} ({', '.join(self.sources)}){end}"

    def entries(self, source: str) -> list[EntrySpec]:
        """The entries that the row gives to a source, in order of preference."""
        return self._specs(source, self.table["dtypes"])

    def measured_entry(self, source: str) -> EntrySpec:
        """The entry that was measured, as this source has it: in the measured dtype and with its sizes compiled in,
        even if the row keeps only the entry for any size."""
        return self._specs(source, [self.table["measured"]["dtype"]], without=("only",))[0]

    def _specs(self, source: str, dtypes: Sequence[str], without: Sequence[str] = ()) -> list[EntrySpec]:
        row = {key: value for key, value in self.table.items() if key in ROW and key not in without}
        return specs_of({**row, "ops": [self.op], "dtypes": dtypes}, source, self.target)


@dataclass(frozen=True)
class Table:
    """One file. `target`: None for the portable one. `rows`: the rows written by hand, each with a text that says where
    it is."""

    path: Path
    target: str | None
    tuned: tuple[TunedRow, ...]
    rows: tuple[tuple[str, Mapping[str, Any]], ...]
    policy: Policy | None
    fastest: Fastest | None = None
    made: dict[str, Sequence[EntrySpec]] = field(default_factory=dict[str, Sequence[EntrySpec]], compare=False)

    def entries(self, source: str) -> Sequence[EntrySpec]:
        """A source's entries, in order of preference. They are made once: everyone who asks for a thousand entries asks
        again. Raises UsageError naming the row that is wrong."""
        if source not in self.made:
            self.made[source] = list(self._entries(source))
        return self.made[source]

    def _entries(self, source: str) -> Iterator[EntrySpec]:
        for row in self.tuned:
            with _named(f"{row.path}: tuned {row.number} ({row.op} {row.shape_class})"):
                yield from row.entries(source)
        for where, row in self.rows:
            with _named(where):
                yield from specs_of(row, source, self.target, self.policy)


class _named:  # noqa: N801 - a context manager, used like a function
    """Puts the place of a row before the message of a UsageError."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, UsageError):
            raise UsageError(f"{self.where}: {error.args[0]}", hint=error.hint) from error


@dataclass(frozen=True)
class Tables:
    """All tables of a folder: those of targets by name, and the portable one last."""

    folder: Path

    @cached_property
    def files(self) -> tuple[Table, ...]:
        """Raises UsageError naming the file and the row that is wrong."""
        paths = sorted(self.folder.glob("*.toml"), key=lambda path: (path.stem == PORTABLE, path.stem))
        return tuple(map(load_table, paths))

    def entries(self, source: str) -> list[EntrySpec]:
        """A source's entries, in order of preference. Raises UsageError if two have the same symbol, or if there is no
        portable table, without which some sizes would have no entry."""
        if not (self.folder / f"{PORTABLE}.toml").is_file():
            raise UsageError(
                f"{self.folder}: there is no {PORTABLE}.toml", hint="it is part of tilestack: install again"
            )
        found = [spec for table in self.files for spec in table.entries(source)]
        seen: set[str] = set()
        for spec in found:
            if spec.symbol in seen:
                raise UsageError(
                    f"{self.folder}: {source} has two entries {spec.symbol}", hint="give one of them another `variant`"
                )
            seen.add(spec.symbol)
        return found

    @cached_property
    def tuned(self) -> tuple[TunedRow, ...]:
        return tuple(row for table in self.files for row in table.tuned)

    @cached_property
    def policies(self) -> Mapping[str, Policy]:
        """The policies by target, and that of the portable table as `default`. Raises UsageError if that is missing."""
        found = {table.target or DEFAULT: table.policy for table in self.files if table.policy is not None}
        if DEFAULT not in found:
            raise UsageError(f"{self.folder}/{PORTABLE}.toml has no [policy]")
        return found

    @cached_property
    def picks(self) -> Mapping[str, Sequence[Pick]]:
        """What the source `fastest` takes, by target."""
        return {str(table.target): table.fastest.picks for table in self.files if table.fastest is not None}


def committed() -> Tables:
    """The tables of this package."""
    return Tables(knobs.ENTRIES)


def entries_of(source: str) -> list[EntrySpec]:
    """All entries of a source, in order of preference."""
    return committed().entries(source)


def tuned_symbols(source: str) -> set[str]:
    """The symbols of a source's tuned entries."""
    rows = (row for row in committed().tuned if source in row.sources)
    return {spec.symbol for row in rows for spec in row.entries(source)}


def load_table(path: Path) -> Table:
    """Reads one file; a missing file counts as an empty table. Raises UsageError naming the file and the row that is
    wrong. An unknown key is an error, because a misspelled condition would not be checked."""
    target = None if path.stem == PORTABLE else path.stem
    if target is not None and target not in targets():
        raise UsageError(f"{path}: there is no target {target}", hint="name the table after its target")
    if not path.exists():
        return Table(path, target, (), (), None)
    return _checked(path, target, read_text(path))


@lru_cache(maxsize=32)
def _checked(path: Path, target: str | None, content: str) -> Table:
    """A table by its content: checking all of ours takes a second, and writing a bundle asks for them twice."""
    found = parse_table(path, content)
    keys = {"policy": is_table, "group": tables, "fastest": is_table, "tuned": tables}
    check_keys(found, keys, str(path), list(keys))
    policy = Policy.from_table(found["policy"], f"{path}: policy") if "policy" in found else None
    for what in ("tuned", "fastest"):
        if target is None and found.get(what):
            raise UsageError(f"{path}: a {what} row is for one target", hint=_AGAIN)
    tuned = tuple(_tuned(path, number, str(target), row) for number, row in enumerate(found.get("tuned", []), 1))
    rows = tuple(row for number, group in enumerate(found.get("group", []), 1) for row in _rows(path, number, group))
    fastest = Fastest.from_table(found["fastest"], f"{path}: fastest") if "fastest" in found else None
    return Table(path, target, tuned, rows, policy, fastest)


def _rows(path: Path, number: int, group: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a group. The group's own keys hold for each of its entries; without entries it is one row."""
    headers = [header("[group]")] * number
    where = f"{place(path, *headers)}: group {number}"
    check_keys(group, {**ROW, "entry": tables}, where, (*ROW, "entry"))
    shared = {key: value for key, value in group.items() if key != "entry"}
    for index, own in enumerate(group.get("entry", [{}]), 1):
        row = {**shared, **own}
        entry = place(path, *headers, *[header("[group.entry]")] * index)
        at = f"{entry}: group {number}, entry {index}" if "entry" in group else where
        check_keys(row, ROW, at, OPTIONAL)
        check_row(row, at)
        yield f"{at} ({', '.join(row['ops'])})", row


def _tuned(path: Path, number: int, target: str, table: Mapping[str, Any]) -> TunedRow:
    where = f"{place(path, *[header('[tuned]')] * number)}: tuned {number}"
    check_keys(table, TUNED, where, TUNED_OPTIONAL)
    if len(below := [name for name in BELOW if name in table]) != 1:
        raise UsageError(f"{where}: it has {' and '.join(below) or 'neither ' + ' nor '.join(BELOW)}", hint=_AGAIN)
    keys, optional = (PREDICTED, PREDICTED_OPTIONAL) if "predicted" in table else (MEASURED, MEASURED_OPTIONAL)
    check_keys(table[below[0]], keys, f"{where}: {below[0]}", optional)
    where = f"{where} ({table['op']} {table['class']})"
    if not table["sources"]:
        raise UsageError(f"{where}: it names no source", hint=_AGAIN)
    check_row({**table, "ops": [table["op"]]}, where)
    return TunedRow(path, number, target, table)


def check_row(row: Mapping[str, Any], where: str) -> None:
    if not (row["ops"] and row["dtypes"]):
        raise UsageError(f"{where}: it is for no {'dtype' if row['ops'] else 'op'}")
    if len(row["grid"]) != 3:
        raise UsageError(f"{where}: grid has {len(row['grid'])} expressions, not three")
    if unknown := [op for op in row["ops"] if op not in ops()]:
        raise UsageError(f"{where}: no op {', '.join(unknown)} in ops.toml", hint=f"one of {', '.join(ops())}")
