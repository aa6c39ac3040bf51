"""The gate for somebody's own ops: are the timed cells of a recording as fast as those of another one?

By the rules of ci/gate: both are timed in turns; what is not neutral is timed again in a new process, with the roles
swapped; what a GPU runs the same machine code for is neutral, and is not timed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.report.result import Results
from ci.gate import accepted
from ci.gate.measure import BASE, NEW, Start, measured
from ci.gate.measurement import Key, measurements
from ci.gate.report import Report
from ci.gate.thresholds import TABLE, Thresholds, load
from ci.gate.verdict import doubtful, judge
from toolchain.compiling.machine_code import machine_code
from toolchain.errors import UsageError
from toolchain.knobs import with_our_packages

from .problem import SOURCE
from .recording import Cell, Launch, Recording
from .timing import described, named


@dataclass(frozen=True)
class Asked:
    """`new` is judged, `base` is what it is compared with. `case`: a pattern of the cases' names. `all_cells`: time
    those of the same machine code too. `accepted`: the file of regressions that were accepted."""

    new: Path
    base: Path
    output: Path
    case: str = ""
    all_cells: bool = False
    executor: str = "cuda"
    accepted: Path = Path("accepted.toml")


def thresholds(path: Path = TABLE) -> Thresholds:
    """Those of ci/gate.toml; every cell is required."""
    rules = load(path)
    return replace(rules, verdict=replace(rules.verdict, required="."))


def same_cells(new: Recording, base: Recording) -> list[str]:
    """The cases for which a GPU of any of the targets runs the same machine code in both recordings."""
    if not new.targets or new.targets != base.targets:
        return []
    before = named(base)
    return [
        name for name, cell in named(new).items() if name in before and _code(new, cell) == _code(base, before[name])
    ]


def _code(recording: Recording, cell: Cell) -> list[Any]:
    """All that the launches of a cell depend on, to compare."""
    arrays = [(kept.shape, kept.dtype, kept.content, kept.written) for kept in cell.arrays]
    return [arrays, *(_launch(recording, launch) for launch in cell.launches)]


def _launch(recording: Recording, launch: Launch) -> list[Any]:
    code = {target: machine_code(recording.read(cubin)) for target, cubin in launch.cubins.items()}
    form = {key: value for key, value in launch.form.to_json().items() if key != "version"}  # of the bytecode
    return [code, form, launch.grid, list(launch.parameters), list(launch.maps)]


def command(asked: Asked, names: Sequence[str], rounds: int, *, swapped: bool) -> list[str]:
    """A measurement of these cases, in a process of its own."""
    one, name, other = (asked.base, NEW, asked.new) if swapped else (asked.new, BASE, asked.base)
    pattern = f"^(?:{'|'.join(map(re.escape, names))})$"
    return [
        sys.executable, "-m", "tilestack", "time", str(one), "--against", f"{name}={other}", "--case", pattern,
        "--samples", str(rounds), "--executor", asked.executor,
        "--output", str(asked.output / ("again" if swapped else "first")),
    ]  # fmt: skip


def start_process(argv: Sequence[str]) -> int:
    """With the code that runs here, in whatever folder it was started."""
    return subprocess.run(argv, check=False, env=with_our_packages()).returncode


def gate(asked: Asked, rules: Thresholds, words: Sequence[str], start: Start = start_process) -> Report:
    """Measures and judges. `words`: the command that does the same. Raises UsageError if no case matches,
    BundleError, and ToolFailed for a measurement that left no results."""
    new, base = Recording.load(asked.new), Recording.load(asked.base)
    cases = [name for name in named(new) if re.search(asked.case, name)]
    there = [name for name in cases if name in named(base)]
    if not cases:
        raise UsageError(
            f"no timed cell of {asked.new} matches {asked.case!r}", hint=f"it has {', '.join(named(new)) or 'none'}"
        )
    same = [] if asked.all_cells else [name for name in same_cells(new, base) if name in there]
    differ = [name for name in there if name not in same]
    if same:
        print(f"{len(same)} of {len(there)} cells have the same machine code, and are not measured", flush=True)
    tried: list[str] = []
    found, confirmed, seen = {}, {}, described(new)
    if differ:
        one = Results.load(measured(command(asked, differ, rules.measure.rounds, swapped=False), start, tried))
        found, seen = measurements(one, BASE), one.environment
        if doubts := [case for case, _ in doubtful(found, rules)]:
            print(f"measured again, with the roles swapped: {', '.join(doubts)}", flush=True)
            argv = command(asked, doubts, rules.measure.again, swapped=True)
            confirmed = measurements(Results.load(measured(argv, start, tried)), NEW, swapped=True)
    keys: list[Key] = [(name, SOURCE) for name in same]
    cells = judge(found, confirmed, rules, there, keys)
    rows = accepted.load(asked.accepted)
    cells = accepted.mark(cells, rows, str(seen.get("gpu", "")), new.sha256)
    notes = [f"New, with nothing to compare: {name}." for name in cases if name not in there]
    notes += [f"No longer there: {name}." for name in named(base) if name not in named(new)]
    return Report(cells, seen, described(base), rules, words, tried, notes, str(asked.accepted))
