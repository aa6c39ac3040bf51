"""Entries tuned for a target: `tuned/<target>.toml`, which `tilestack tune` writes and both kernel sources read.

A row is one of `entries.toml` (see `entry.entries_of`) for a single target, with its shape class, the sources that it
is for, and what was measured. A source's tuned entries come before its own, so that a launch takes them where their
conditions hold. Where there is no such folder, as in an installed wheel, nothing is tuned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from . import entry
from .entry import EntrySpec, entries_of
from .errors import SourceError, UsageError
from .knobs import ROOT
from .pins import pins
from .tables import Check, check_keys, is_integer, read_table, table_of, tables, text, texts
from .targets import targets

FOLDER = ROOT / "tuned"
SPACES = "spaces.toml"  # what `tilestack tune` searches; it stands in the same folder
_AGAIN = "tilestack tune writes these files; see docs/tuning.md"

times = table_of(lambda value: is_integer(value) or isinstance(value, float), "times in microseconds")
hashes = table_of(lambda value: isinstance(value, str), "hashes")

# A tuned row in the order in which it is written. Search spaces know nothing of `dense`.
ROW: Mapping[str, Check] = {
    "op": text, "class": text, "dtypes": texts, "sources": texts,
    **{key: check for key, check in entry.ROW.items() if key not in ("op", "dtypes", "dense")},
    "measured": table_of(lambda _: True, "anything"),
}  # fmt: skip
OPTIONAL = ("kernel", "constants", "sizes", "hints", "aligned", "multiples", "where")
# What was measured: times in microseconds by shape; `own_us` of what the source's own entries gave.
MEASURED: Mapping[str, Check] = {
    "gpu": text, "driver": text, "date": text, "source": text, "dtype": text, "space": text, "us": times,
    "runner_up": text, "runner_up_us": times, "own_us": times, "tools": hashes, "kernel_hash": hashes,
}  # fmt: skip
MEASURED_OPTIONAL = ("runner_up", "runner_up_us", "own_us")


class HasKernels(Protocol):
    """As much of a kernel source as tells whether its kernels have changed."""

    def written(self, spec: EntrySpec) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class TunedRow:
    """A row of `path`, the `number`-th. `shape_class`: the sizes that it was tuned for, by the name they have in
    spaces.toml. `table`: the row as it stands. `entries`: what it gives, by source."""

    path: Path
    number: int
    target: str
    op: str
    shape_class: str
    table: Mapping[str, Any]
    entries: Mapping[str, tuple[EntrySpec, ...]]

    @property
    def name(self) -> str:
        """For people: `linear bf16 m16 for sm_90 (mlir, py)`."""
        dtypes = ", ".join(self.table["dtypes"])
        return f"{self.op} {dtypes} {self.shape_class} for {self.target} ({', '.join(self.entries)})"


@dataclass(frozen=True)
class Stale:
    """A row that was measured with another compiler or another kernel than are here now: it works, but something else
    may be faster."""

    row: TunedRow
    why: str


def load_rows(folder: Path = FOLDER) -> list[TunedRow]:
    """The rows of all targets, in order of preference. Raises UsageError naming the file and row that is wrong."""
    return [row for path in sorted(folder.glob("*.toml")) if path.name != SPACES for row in load_file(path)]


def load_file(path: Path) -> list[TunedRow]:
    """The rows of one target's file; none where there is no such file. Raises UsageError."""
    target = path.stem
    if target not in targets():
        raise UsageError(f"{path}: there is no target {target}", hint=f"a file is named for its target; {_AGAIN}")
    if not path.exists():
        return []
    table = read_table(path)
    check_keys(table, {"entry": tables}, str(path), ["entry"])
    return [_row(path, number, target, row) for number, row in enumerate(table.get("entry", []), 1)]


def tuned_entries(source: str, folder: Path = FOLDER) -> list[EntrySpec]:
    """A source's tuned entries, in order of preference."""
    return [spec for row in load_rows(folder) for spec in row.entries.get(source, ())]


def put_first(own: Sequence[EntrySpec], source: str, folder: Path = FOLDER) -> list[EntrySpec]:
    """A source's tuned entries, then its own. Raises UsageError if two have one symbol."""
    found = [*tuned_entries(source, folder), *own]
    seen: set[str] = set()
    for spec in found:
        if spec.symbol in seen:
            raise UsageError(f"{folder}: {source} has two entries {spec.symbol}", hint="give one another `variant`")
        seen.add(spec.symbol)
    return found


def kernel_hash(written: Mapping[str, str]) -> str:
    """sha256 over the texts that a kernel is written in, by name."""
    digest = hashlib.sha256()
    for name, text_of in sorted(written.items()):
        digest.update(f"{name} {hashlib.sha256(text_of.encode()).hexdigest()}\n".encode())
    return digest.hexdigest()


def stale(rows: Sequence[TunedRow], load_source: Callable[[str], HasKernels]) -> list[Stale]:
    """The rows whose compiler or kernel has changed since they were measured. `load_source`: a source by its name."""
    found: list[Stale] = []
    for row in rows:
        measured = row.table["measured"]
        reasons = [
            f"{name} is another one"
            for name, sha256 in measured["tools"].items()
            if name not in pins().tools or pins().tools[name].expected() != sha256
        ]
        for source, specs in row.entries.items():
            try:
                now = kernel_hash(load_source(source).written(specs[0]))
            except SourceError as error:
                reasons.append(str(error.args[0]))
                continue
            if now != measured["kernel_hash"].get(source):
                reasons.append(f"the kernel of source {source} has changed")
        if reasons:
            found.append(Stale(row, "; ".join(reasons)))
    return found


def _row(path: Path, number: int, target: str, table: Mapping[str, Any]) -> TunedRow:
    where = f"{path}: entry {number}"
    check_keys(table, ROW, where, OPTIONAL)
    check_keys(table["measured"], MEASURED, f"{where}: measured", MEASURED_OPTIONAL)
    where = f"{where} ({table['op']} {table['class']})"
    if list(table["targets"]) != [target]:
        raise UsageError(f"{where}: targets is {table['targets']}: it must be [{target!r}]", hint=_AGAIN)
    if not (table["sources"] and table["dtypes"]):
        raise UsageError(f"{where}: it is for no {'dtype' if table['sources'] else 'source'}", hint=_AGAIN)
    if len(table["grid"]) != 3:
        raise UsageError(f"{where}: grid has {len(table['grid'])} expressions, not three", hint=_AGAIN)
    try:
        entries = {source: tuple(entries_of([table], source, where)) for source in table["sources"]}
    except UsageError as error:
        raise UsageError(f"{where}: {error.args[0]}", hint=error.hint) from error
    return TunedRow(path, number, target, table["op"], table["class"], table, entries)
