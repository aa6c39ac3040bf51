"""What several runs say together, in a line: for the page's head, for JUnit and for a step's summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from conformance.results.result import CellResult

from .runs import Run


def latest(runs: Sequence[Run]) -> list[tuple[Run, CellResult]]:
    """The rows of the matrix; of a shape that one machine ran several times, the last."""
    found: dict[tuple[str, str, str], tuple[Run, CellResult]] = {}
    for run in runs:
        for row in run.matrix.rows if run.matrix else ():
            found[row.cell, row.executor.split(" ", 1)[-1], row.shape] = (run, row)
    return list(found.values())


def counts(runs: Sequence[Run]) -> Counter[str]:
    return Counter(row.status for _, row in latest(runs))


def verdict(runs: Sequence[Run]) -> str:
    """`failed`, `unfinished`, `passed` or `nothing`."""
    found = counts(runs)
    wrong = sum(row["status"] == "wrong" for run in runs if run.bench for row in run.bench.rows)
    if found["failed"] or found["error"] or wrong:
        return "failed"
    if any(run.matrix and run.matrix.interrupted for run in runs):
        return "unfinished"
    return "passed" if found["passed"] or any(run.bench for run in runs) else "nothing"


def headline(runs: Sequence[Run]) -> str:
    """Such as `1192 of 1192 passed, 40 not run · NVIDIA H100, NVIDIA H200`."""
    found = counts(runs)
    ran = found["passed"] + found["failed"] + found["error"]
    parts = [f"{found['passed']} of {ran} passed"] if found else []
    parts += [f"{found[status]} {status}" for status in ("failed", "error", "not run") if found[status]]
    if times := sum(len(run.bench.rows) for run in runs if run.bench):
        parts.append(f"{times} timed")
    if any(run.matrix and run.matrix.interrupted for run in runs):
        parts.append("interrupted")
    machines = dict.fromkeys(name for run in runs for name in run.machines)
    return " · ".join(filter(None, (", ".join(parts) or "no results", ", ".join(machines))))
