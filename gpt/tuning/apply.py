"""The third phase: each contest's winner to `tuned/<target>.toml`, in the place of what stood there for its op, dtype,
class and source. Rows of these ops whose class is in no space any more go, for their conditions may catch what another
class is for now. All other rows stay as they are, and the same measurements always give the same text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolchain.entry import DTYPES
from toolchain.errors import UsageError
from toolchain.tuned import FOLDER, MEASURED, OPTIONAL, ROW, load_file

from . import toml
from .catalogue import Candidate, Catalogue, Contest, kernel_name
from .files import write_whole
from .measured import Measured
from .spaces import Spaces
from .tasks import Machine
from .winners import Placed, Unfinished, Winner, decide

HEADER = """\
# Entries tuned for {target}, written by `tilestack tune`: see docs/tuning.md. They come before the sources' own. `us`
# and its like are microseconds of one launch by shape; `own_us` is what the source's own entries took.

"""
HashOf = Callable[[str, str, str], str]  # of a source's kernel for an op: source, op, kernel


@dataclass
class Applied:
    """What was written: `lines` say it for people. `changed`: whether the file is another now."""

    path: Path
    lines: list[str] = field(default_factory=list)
    changed: bool = False


def apply(
    catalogue: Catalogue,
    measured: Measured,
    spaces: Spaces,
    *,
    also_sources: Sequence[str] = (),
    also_dtypes: Sequence[str] = (),
    hash_of: HashOf,
    folder: Path = FOLDER,
) -> Applied:
    """Writes the winners. `also_sources` have the same kernels, `also_dtypes` the same speed: rows are for them too.
    `hash_of`: their kernels as they are now.

    Raises UsageError if there is nothing measured on a GPU of this target, or more sources than one were measured.
    """
    machine = _machine(measured, catalogue)
    if also_sources and len(catalogue.sources) > 1:
        raise UsageError("several sources were measured: none of them speaks for others", hint="tune with one --source")
    path = folder / f"{catalogue.target}.toml"
    rows = [dict(row.table) for row in load_file(path)]
    done = Applied(path)
    for contest, source in itertools.product(catalogue.contests, catalogue.sources):
        result = decide(catalogue, measured, contest, source)
        if result is None:
            continue
        done.lines.append(_told(result))
        if isinstance(result, Unfinished) or result.first is None:
            continue  # what stands there may be right or not: nothing was learnt of it
        sources = sorted({source, *also_sources})
        dtypes = [contest.dtype, *(dtype for dtype in also_dtypes if dtype != contest.dtype)]
        rows = _without(rows, contest, dtypes, sources)
        if result.candidate is not None:
            kernels = {name: _hash(catalogue, result.candidate, name, hash_of) for name in sources}
            rows += [_row(catalogue, measured, machine, result, dtype, kernels) for dtype in dtypes]
    for op in sorted({contest.op for contest in catalogue.contests}):
        if gone := {row["class"] for row in rows if row["op"] == op} - spaces.classes_of(op):
            done.lines.append(f"{op}: no class {', '.join(sorted(gone))} any more: dropped")
            rows = [row for row in rows if row["op"] != op or row["class"] not in gone]
    text = render(catalogue.target, rows, spaces)
    done.changed = text != (path.read_text() if path.exists() else "")
    if done.changed:
        write_whole(path, text)
    return done


def render(target: str, rows: Sequence[Mapping[str, Any]], spaces: Spaces) -> str:
    """The file's text: rows by op and dtype, then in the order of their classes, keys in the order of `ROW`."""

    def place(row: Mapping[str, Any]) -> tuple[Any, ...]:
        op, name = row["op"], row["class"]
        return (op, DTYPES.index(row["dtypes"][0]), spaces.position(op, name), name, row["sources"])

    ordered = [_ordered(row) for row in sorted(rows, key=place)]
    return HEADER.format(target=target) + toml.entries(ordered, "entry", "measured")


def _ordered(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: row[key] for key in ROW if key in row and (row[key] or key not in OPTIONAL)}
    return kept | {"measured": {key: row["measured"][key] for key in MEASURED if key in row["measured"]}}


def _machine(measured: Measured, catalogue: Catalogue) -> Machine:
    machine = measured.machine
    if machine is None:
        raise UsageError(f"{measured.path}: nothing is measured", hint="tilestack tune --phase measure, on a GPU")
    if machine.kind != "cuda" or machine.target != catalogue.target:
        raise UsageError(
            f"{measured.path} was measured on {machine.gpu} ({machine.target}), which says nothing of "
            f"{catalogue.target}",
            hint=f"measure on a GPU of {catalogue.target}",
        )
    return machine


def _without(
    rows: Sequence[dict[str, Any]], contest: Contest, dtypes: Sequence[str], sources: Sequence[str]
) -> list[dict[str, Any]]:
    """The rows less those of a class, dtypes and sources; a row that is for others too stays for those."""
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


def _row(
    catalogue: Catalogue, measured: Measured, machine: Machine, won: Winner, dtype: str, kernels: Mapping[str, str]
) -> dict[str, Any]:
    assert won.candidate is not None and won.first is not None
    spec, contest = won.candidate.spec, won.contest
    row: dict[str, Any] = {
        "op": spec.op,
        "class": contest.name,
        "dtypes": [dtype],
        "sources": list(kernels),
        "targets": [catalogue.target],
        "variant": f"{catalogue.target}_{contest.name}",
        "kernel": spec.kernel,
        "constants": spec.constants,
        "sizes": spec.sizes,
        "hints": spec.hints,
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
        "kernel_hash": kernels,
    }
    if won.runner_up:
        row["measured"] |= {"runner_up": won.runner_up.symbol, "runner_up_us": _times(won.runner_up)}
    if won.own:
        row["measured"]["own_us"] = _times(won.own)
    return row


def _times(placed: Placed) -> dict[str, float]:
    return {shape: float(f"{us:.4g}") for shape, us in placed.times_us.items()}


def _hash(catalogue: Catalogue, won: Candidate, source: str, hash_of: HashOf) -> str:
    if source == won.spec.source:
        return catalogue.kernels[kernel_name(won.spec)]  # as it was when it was compiled
    return hash_of(source, won.spec.op, won.spec.kernel)


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
