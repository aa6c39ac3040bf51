"""Writes what `fastest.py` measured to the table `[fastest]` of `entries/<target>.toml`, a row for each class. It
stands before the tuned rows; the rest of the file stays as it is. A row that whole passes alone decided on, which are
not measured here, stays too (`by_passes`). The same measurements always give the same text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolchain import knobs
from toolchain.contract.entries import entries_of, load_table
from toolchain.contract.fastest import HEAD, Pick
from toolchain.contract.sources import best_of, registered
from toolchain.errors import UsageError
from toolchain.files import write_whole

from . import toml
from .apply import FIRST, HEADER
from .fastest import SOURCE, Class, Found
from .winners import GAIN

MARK = "# Which source has the fastest entry: `tilestack tune fastest` writes these rows."
TEXT = f"""{MARK} Of several that hold for
# a launch the first counts; where none holds, the first source of `fastest` in toolchain/contract/sources.toml counts.
# `us`: microseconds of one launch, by shape and source. docs/tuning.md explains the rows.

"""


def decide(each: Class, found: Found) -> Pick | None:
    """The row of a class; None if fewer than two sources were measured at all of its shapes. The score of a source is
    the geometric mean of its times. One is taken instead of an earlier one of `best_of` if it is faster by GAIN, unless
    a model's pass was slower with it: what overlaps with the launches beside it is not seen where one op is timed."""
    rows = [row for row in found.rows if (row.op, row.shape_class) == (each.op, each.made.name)]
    us: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.us is not None:
            us.setdefault(row.shape, {})[row.source] = float(f"{row.us:.4g}")
    right = [source for source in best_of(SOURCE) if us and all(source in times for times in us.values())]
    if len(right) < 2:
        return None
    score = {source: math.fsum(math.log(times[source]) for times in us.values()) / len(us) for source in right}
    best, *others = right
    for source in others:
        if score[source] + math.log1p(GAIN) < score[best]:
            best = source
    slower = [
        passed.name
        for passed in found.passes
        if (passed.op, passed.shape_class, passed.source) == (each.op, each.made.name, best) and passed.is_slower
    ]
    if slower:
        best = right[0]
    taken = (row.entry for row in rows if row.source == best)
    where = (*each.made.where, *dict.fromkeys(said for symbol in taken for said in _conditions(best, symbol)))
    return Pick(each.op, each.made.name, (found.dtype,), best, where, us, tuple(slower))


def _conditions(source: str, symbol: str) -> list[str]:
    """What the measured entry asks of the sizes, if its source has entries of its own: others of them may be slower, or
    take no such sizes at all."""
    if not registered()[source].named_rows:
        return []
    spec = next(spec for spec in entries_of(source) if spec.symbol == symbol)
    names = {name: str(value) for name, value in spec.constants.items()}
    said = [re.sub(r"[A-Za-z_]\w*", lambda name: names.get(name[0], name[0]), text) for text in spec.where]
    return [*(f"{dim} % {step} == 0" for dim, step in spec.multiples.items()), *said]


def picks_of(found: Found, wanted: Sequence[Class]) -> list[Pick]:
    """The rows of all classes."""
    return [pick for each in wanted if (pick := decide(each, found))]


def write(found: Found, wanted: Sequence[Class], folder: Path = knobs.ENTRIES) -> tuple[Path, list[str]]:
    """Write the rows of all classes. Returns the file, and a line for each class, also for those that had a row and get
    none. Raises UsageError if nothing was measured on a GPU, or if an entry was wrong."""
    machine = found.machine
    if machine.kind != "cuda":
        raise UsageError(f"this was measured on {machine.gpu}, which says nothing about a GPU")
    if wrong := [row for row in found.rows if row.why]:
        listed = "; ".join(f"{row.source}/{row.entry} at {row.shape}: {row.why}" for row in wrong)
        raise UsageError(f"an entry was not right or not timed: {listed}", hint="mend it and measure again")
    picks = picks_of(found, wanted)
    if not picks:
        raise UsageError("no class was measured for two sources", hint="python3 -m tune fastest DIR, on a GPU")
    path = folder / f"{machine.target}.toml"
    before, table = (path.read_text(), load_table(path).fastest) if path.exists() else ("", None)
    earlier = table.picks if table else ()
    written = with_kept(picks, earlier)
    write_whole(path, render(before, found, written), parents=True)
    load_table(path)
    there = {_class_of(pick) for pick in written}
    gone = [" ".join(_class_of(pick)) for pick in earlier if _class_of(pick) not in there]
    return path, [*map(_told, written), *(f"{name}: its row is gone, for it was not measured" for name in gone)]


def with_kept(picks: Sequence[Pick], earlier: Sequence[Pick]) -> list[Pick]:
    """The picks, with those of the earlier rows that whole passes decided on in place of the ones of their classes, or
    before the first of their op."""
    kept = {_class_of(pick): pick for pick in earlier if pick.by_passes}
    made = [kept.pop(_class_of(pick), pick) for pick in picks]
    for pick in kept.values():
        at = next((number for number, other in enumerate(made) if other.op == pick.op), len(made))
        made.insert(at, pick)
    return made


def _class_of(pick: Pick) -> tuple[str, str]:
    return pick.op, pick.shape_class


def render(before: str, found: Found, picks: Sequence[Pick]) -> str:
    """The file's text with these rows in place of the earlier ones."""
    head, first, tuned = before.partition(f"\n{FIRST}")
    head = head.removesuffix(HEADER.rstrip("\n")).rstrip().removesuffix(HEADER.rstrip()).rstrip()
    head = head.partition(MARK)[0].rstrip()
    machine = found.machine
    values: Mapping[str, Any] = {
        "gpu": machine.gpu, "driver": machine.driver, "date": found.date, "dtype": found.dtype
    }  # fmt: skip
    lines = ["[fastest]", *(f"{key} = {toml.value(values[key])}" for key in HEAD if key in values), ""]
    for pick in picks:
        row = {key: value for key, value in pick.to_table().items() if value}
        lines += ["[[fastest.row]]", *(f"{key} = {toml.value(value)}" for key, value in row.items()), ""]
    parts = [head, TEXT + "\n".join(lines).rstrip()]
    if first:
        parts.append(HEADER + FIRST + tuned.rstrip())
    return "\n\n".join(filter(None, parts)) + "\n"


def _told(pick: Pick) -> str:
    if pick.by_passes:
        return f"{pick.op} {pick.shape_class}: {pick.source}, kept: {pick.by_passes}"
    times = "; ".join(
        f"{shape}: {', '.join(f'{source} {us:g}' for source, us in by.items())} us" for shape, by in pick.us.items()
    )
    slower = f"; another made a model slower: {', '.join(pick.slower_in)}" if pick.slower_in else ""
    return f"{pick.op} {pick.shape_class}: {pick.source} ({times}{slower})"
