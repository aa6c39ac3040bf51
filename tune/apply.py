"""The third phase: writes each contest's winner to the tuned rows of `entries/<target>.toml`. It replaces the rows of
the same op, dtype, class and source, be they measured or predicted.

Rows whose class is not in any space any more are removed, because their conditions may hold for sizes that now belong
to another class. They stay after a search of trial spaces, which do not list the other classes. All other rows stay as
they are, and so does the hand-written part before them. The same measurements always give the same text.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from toolchain import knobs
from toolchain.compiling.tuned import code_hash
from toolchain.contract.entries import BELOW, MEASURED, PREDICTED, TUNED, TUNED_OPTIONAL, TunedRow, load_table
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import DTYPES
from toolchain.errors import UsageError
from toolchain.files import write_whole

from . import toml
from .catalogue import Catalogue, Contest
from .measured import Launched, Measured
from .spaces import Spaces
from .winners import Placed, Unfinished, Winner, decide
from .worker import Machine

HEADER = """\
# Written by `tilestack tune`, with what was measured: microseconds of one launch by shape; `own_us` is what the entries
# took that are not tuned. Where it says `predicted`, nobody measured them. docs/tuning.md explains the rows.

"""
FIRST = "[[tuned]]"  # the part of the table from here on is generated
CodeOf = Callable[[EntrySpec], bytes]  # the code that the source now makes for an entry
FaultOf = Callable[[Mapping[str, Any]], str]  # what is wrong with the entries of a row, or "": candidates.Faults


@dataclass
class Applied:
    """The outcome. `lines` tell the user what was written. `changed`: True if the file's text changed."""

    path: Path
    lines: list[str] = field(default_factory=list)
    changed: bool = False


def apply(
    catalogue: Catalogue,
    contests: Sequence[Contest],
    measured: Measured,
    spaces: Spaces,
    launched: Launched,
    *,
    drop: bool = True,
    also_sources: Sequence[str] = (),
    also_dtypes: Sequence[str] = (),
    code_of: CodeOf,
    fault_of: FaultOf,
    folder: Path = knobs.ENTRIES,
) -> Applied:
    """Write the winners of some contests of a catalogue.

    `launched`: the bundles as compiled now. Rows of `measured` that were taken with other code are ignored.
    `drop`: remove rows of classes that neither `spaces` nor the catalogue has.
    `also_sources`, `also_dtypes`: sources with the same kernels, and dtypes with the same speed; a row is for them too.
    `code_of`: the code of an entry as its source makes it now.
    `fault_of`: says what is wrong with the entries of a row; such a variant is passed over for the next best.

    Raises UsageError if nothing was measured on a GPU of this target, or if several sources were measured.
    """
    machine = _machine(measured, catalogue)
    if also_sources and len(catalogue.sources) > 1:
        raise UsageError(
            "several sources were measured, so none of them can be used for other sources",
            hint="tune with one --source",
        )
    launched.forget_old(measured)
    path = folder / f"{catalogue.target}.toml"
    rows = [dict(row.table) for row in load_table(path).tuned]
    done = Applied(path)
    for contest, source in itertools.product(contests, catalogue.sources):
        sources = sorted({source, *also_sources})
        dtypes = [contest.dtype, *(dtype for dtype in also_dtypes if dtype != contest.dtype)]
        make = partial(_rows, catalogue, measured, machine, dtypes, sources, launched, code_of)
        lines, made = _chosen(catalogue, measured, contest, source, make, fault_of)
        done.lines += lines
        if made is not None:
            rows = _without(rows, contest, dtypes, sources) + made
    for op in sorted({contest.op for contest in contests}) if drop else ():
        known = spaces.classes_of(op) | {contest.name for contest in catalogue.contests if contest.op == op}
        if gone := {row["class"] for row in rows if row["op"] == op} - known:
            done.lines.append(f"{op}: no class {', '.join(sorted(gone))} any more: dropped")
            rows = [row for row in rows if row["op"] != op or row["class"] not in gone]
    before = path.read_text() if path.exists() else ""
    text = render(before, rows, spaces)
    done.changed = text != before
    if done.changed:
        write_whole(path, text, parents=True)
    return done


def _chosen(
    catalogue: Catalogue,
    measured: Measured,
    contest: Contest,
    source: str,
    make: Callable[[Winner], list[dict[str, Any]]],
    fault_of: FaultOf,
) -> tuple[list[str], list[dict[str, Any]] | None]:
    """Lines for the user, and the rows of the fastest variant without a fault. The rows are empty if the source's own
    entries are best, and None if the measurements do not suffice to decide, so that the old rows stay."""
    lines: list[str] = []
    passed: set[str] = set()
    while isinstance(result := decide(catalogue, measured, contest, source, passed), Winner) and result.candidate:
        rows = make(result)
        fault = next(filter(None, map(fault_of, rows)), "")
        if not fault:
            return [*lines, _told(result)], rows
        symbol = result.candidate.spec.symbol
        passed.add(symbol)
        lines.append(f"{contest.title} ({source}): {symbol} is passed over: {fault}")
    if isinstance(result, Winner) and result.first:
        return [*lines, _told(result)], []
    if passed:
        return [*lines, f"{contest.title} ({source}): no variant is left: the source's own entries stay"], []
    return ([_told(result)] if result else []), None


def render(before: str, rows: Sequence[Mapping[str, Any]], spaces: Spaces) -> str:
    """The file's text: the hand-written part of `before`, then the rows by op and dtype, in the order of their classes,
    with keys in the order of `TUNED`. Rows that differ only in their dtypes become one."""

    def place(row: Mapping[str, Any]) -> tuple[Any, ...]:
        op, name = row["op"], row["class"]
        return (op, DTYPES.index(row["dtypes"][0]), spaces.position(op, name), name, row["sources"])

    joined: list[dict[str, Any]] = []
    for row in map(_ordered, sorted(rows, key=place)):
        rest = {key: value for key, value in row.items() if key != "dtypes"}
        same = next((o for o in joined if {key: value for key, value in o.items() if key != "dtypes"} == rest), None)
        if same is None:
            joined.append(row)
        else:
            same["dtypes"] = [*same["dtypes"], *row["dtypes"]]
    return _by_hand(before) + HEADER + toml.entries(sorted(joined, key=place), "tuned", *BELOW)


def _by_hand(before: str) -> str:
    """The hand-written part of a table's text."""
    head = before.partition(FIRST)[0] if before.startswith(FIRST) else before.partition(f"\n{FIRST}")[0]
    head = head.rstrip().removesuffix(HEADER.rstrip()).rstrip()
    return f"{head}\n\n" if head else ""


def _ordered(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: row[key] for key in TUNED if key in row and (row[key] or key not in TUNED_OPTIONAL)}
    below, keys = ("predicted", PREDICTED) if "predicted" in row else ("measured", MEASURED)
    return kept | {below: {key: row[below][key] for key in keys if key in row[below]}}


def _machine(measured: Measured, catalogue: Catalogue) -> Machine:
    machine = measured.machine
    if machine is None:
        raise UsageError(f"{measured.path}: nothing is measured", hint="tilestack tune --phase measure, on a GPU")
    if machine.kind != "cuda" or machine.target != catalogue.target:
        raise UsageError(
            f"{measured.path} was measured on {machine.gpu} ({machine.target}), which says nothing about "
            f"{catalogue.target}",
            hint=f"measure on a GPU of {catalogue.target}",
        )
    return machine


def _without(
    rows: Sequence[dict[str, Any]], contest: Contest, dtypes: Sequence[str], sources: Sequence[str]
) -> list[dict[str, Any]]:
    """The rows without those of a class, dtypes and sources. A row that is also for other sources stays for those."""
    kept: list[dict[str, Any]] = []
    for row in rows:
        touched = (row["op"], row["class"]) == (contest.op, contest.name) and set(row["dtypes"]) & set(dtypes)
        others = [source for source in row["sources"] if source not in sources]
        if not touched:
            kept.append(row)
            continue
        if others:
            kept.append({**row, "sources": others})
        if rest := [dtype for dtype in row["dtypes"] if dtype not in dtypes]:
            kept.append({**row, "dtypes": rest, "sources": [s for s in row["sources"] if s in sources]})
    return [row for row in kept if row["sources"]]


def _rows(
    catalogue: Catalogue,
    measured: Measured,
    machine: Machine,
    dtypes: Sequence[str],
    sources: Sequence[str],
    launched: Launched,
    code_of: CodeOf,
    won: Winner,
) -> list[dict[str, Any]]:
    """A winner's row for each dtype."""
    assert won.candidate is not None
    spec = won.candidate.spec
    row = _row(catalogue, measured, machine, won, won.contest.dtype, sources)
    made = TunedRow(launched.variants.root, 0, catalogue.target, row)
    code: dict[str, str] = {}
    for source in sources:
        if source == spec.source:  # what was measured
            entry = launched.variants.find(source, spec.symbol)
            code[source] = code_hash(launched.variants.read(entry.code), spec.symbol)
        else:
            other = made.measured_entry(source)
            code[source] = code_hash(code_of(other), other.symbol)
    row["measured"]["code"] = code
    return [{**row, "dtypes": [dtype]} for dtype in dtypes]


def _row(
    catalogue: Catalogue, measured: Measured, machine: Machine, won: Winner, dtype: str, sources: Sequence[str]
) -> dict[str, Any]:
    assert won.candidate is not None and won.first is not None
    spec, contest = won.candidate.spec, won.contest
    row: dict[str, Any] = {
        "op": spec.op,
        "class": contest.name,
        "dtypes": [dtype],
        "sources": list(sources),
        "variant": f"{catalogue.target}_{contest.name}",
        "kernel": spec.kernel,
        "constants": spec.constants,
        "sizes": spec.sizes,
        "hints": spec.hints.get(catalogue.target, {}),
        "aligned": spec.aligned,
        "multiples": spec.multiples,
        "where": [*spec.where, *contest.where],
        "grid": spec.grid,
    }
    row["measured"] = {
        "gpu": machine.gpu,
        "driver": machine.driver,
        "date": measured.date,
        "source": won.source,
        "dtype": contest.dtype,
        "space": won.candidate.space,
        "us": _times(won.first),
        "tools": catalogue.tools,
    }
    if won.runner_up:
        row["measured"] |= {"runner_up": won.runner_up.symbol, "runner_up_us": _times(won.runner_up)}
    if won.own:
        row["measured"]["own_us"] = _times(won.own)
    return row


def _times(placed: Placed) -> dict[str, float]:
    return {shape: float(f"{us:.4g}") for shape, us in placed.times_us.items()}


def _told(result: Winner | Unfinished) -> str:
    title = f"{result.contest.title} ({result.source})"
    if isinstance(result, Unfinished):
        return f"{title}: left as it is, {result.missing} measurements are missing"
    title = f"{title}, {result.entrants} variants"
    if result.first is None:
        return f"{title}: left as it is, none was right on all shapes"
    times = ", ".join(f"{us:.4g}" for us in result.first.times_us.values())
    own = ", ".join(f"{us:.4g}" for us in result.own.times_us.values()) if result.own else "not right"
    verdict = "" if result.candidate else ": the source's own entries stay"
    if result.slower_on:
        verdict = f": slower on {', '.join(result.slower_on)}, so part the class"
    return f"{title}: {result.first.symbol} {times} us, own {own}{verdict}"
