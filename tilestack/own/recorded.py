"""Checks what a recording holds: on a GPU without a compiler, or on the interpreter."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conformance.results.result import CellResult, Results
from toolchain.errors import TilestackError, UsageError
from toolchain.runtime import Executor, open_executor

from .recording import Cell, Recording
from .replay import Played, check_targets
from .run import environment, failed, row_of

REPEATS = 10  # launches of which a GPU's time is the median


def run_recorded(
    folder: Path, ops: Sequence[str], dtypes: Sequence[str], on: str, told: Callable[[CellResult], None]
) -> Results:
    """Every cell of a recording; on the interpreter those that are timed alone are left out, for they are large. Raises
    BundleError, UsageError if none is left, and NoGPU."""
    started, recording = time.perf_counter(), Recording.load(folder)
    cells = [
        cell
        for cell in recording.cells
        if (not ops or cell.op in ops) and (not dtypes or cell.dtype in dtypes) and (cell.checked or on != "cpu")
    ]  # fmt: skip
    if not cells:
        raise UsageError(f"{folder} has no such op or dtype", hint="leave --op and --dtype out")
    rows: list[CellResult] = []
    with open_executor(on) as executor:
        check_targets(executor, recording)
        loaded: dict[str, Any] = {}
        for cell in cells:
            rows.append(_row(executor, recording, cell, loaded))
            told(rows[-1])
        found = environment(executor.name, recording.seed, time.perf_counter() - started)
    commit = recording.commit
    return Results({**found, **{f"bundle_{name}": value for name, value in commit.items()}}, rows)


def _row(executor: Executor, recording: Recording, cell: Cell, loaded: dict[str, Any]) -> CellResult:
    problem = recording.problem(cell)
    fixed = row_of(problem, executor.name, executor.target or "")
    try:
        played = Played(executor, recording, cell, loaded)
        played.run()
        verdict = played.check()
        us = executor.time_us(played.run, REPEATS) if executor.kind == "cuda" else None
    except TilestackError as error:
        return failed(fixed, error)
    symbols = tuple(dict.fromkeys(launch.symbol for launch in cell.launches))
    return CellResult(*fixed, "passed", verdict.error, verdict.bound, us, worst=verdict.worst, entries=symbols)
