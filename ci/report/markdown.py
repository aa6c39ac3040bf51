"""The report as Markdown, for the summary of a CI step and for a comment: counts, failures, and how to repeat them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.results.result import CellResult
from toolchain.caching.counts import Counts, markdown

from .runs import Run, machine
from .summary import headline, latest, verdict

SHOWN = 20  # failures: a comment has a limit, and the page has them all
LENGTH = 300  # characters of a message
MARKS = {"passed": "✅", "failed": "❌", "unfinished": "⚠️", "nothing": "⚠️"}


def render_markdown(runs: Sequence[Run], compiles: Sequence[Mapping[str, Any]] | None = None) -> str:
    """A few lines, tables, and a block of code for each failure. `compiles`: what the compile cache did in each."""
    lines = [f"### {MARKS[verdict(runs)]} {_cell(headline(runs))}", ""]
    rows = [row for _, row in latest(runs)]
    lines += _machines(rows)
    lines += _failures(row for row in rows if row.status in ("failed", "error"))
    lines += _slower(runs)
    lines += _origins(runs)
    if compiles is not None:
        lines += ["", markdown({f"{len(compiles)} compiles": Counts.summed(compiles)})]
    return "\n".join(lines).rstrip() + "\n"


def _machines(rows: Sequence[CellResult]) -> list[str]:
    found: dict[str, Counter[str]] = {}
    for row in rows:
        name = machine(row.executor, row.target)
        found.setdefault(name, Counter())[row.status] += 1
    if not found:
        return []
    lines = ["| machine | passed | failed | error | not run |", "|---|--:|--:|--:|--:|"]
    for name, counts in found.items():
        ran = counts["passed"] + counts["failed"] + counts["error"]
        numbers = [f"{counts['passed']}/{ran}", *(str(counts[s]) for s in ("failed", "error", "not run"))]
        lines.append(f"| {_cell(name)} | {' | '.join(numbers)} |")
    return [*lines, ""]


def _failures(rows: Iterable[CellResult]) -> list[str]:
    failed = list(rows)
    lines: list[str] = []
    for row in failed[:SHOWN]:
        said = row.detail if len(row.detail) <= LENGTH else row.detail[:LENGTH] + "…"
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", said)), default=0))
        lines += [
            f"**{_cell(row.cell)}** {_cell(row.shape)} on {_cell(machine(row.executor, row.target))}: {row.status}",
            "", fence, said, "", f"tilestack reproduce {row.cell}", fence, "",
        ]  # fmt: skip
    if len(failed) > SHOWN:
        lines += [f"{len(failed) - SHOWN} more are in the report.", ""]
    return lines


def _slower(runs: Sequence[Run]) -> list[str]:
    rows = [(run, row) for run in runs if run.bench for row in run.bench.rows if row["status"] == "wrong"]
    return [f"**{_cell(row['case'])}** {row['source']}: wrong: {_cell(row['detail'])}\n" for _, row in rows]


def _origins(runs: Sequence[Run]) -> list[str]:
    lines = ["| results | commit | bundle | driver | kernels that ran |", "|---|---|---|---|--:|"]
    for run in runs:
        origin = run.origin
        if origin is None:
            lines.append(f"| {_cell(run.name)} | not said | not said | | |")
            continue
        changed = " with changes" if origin.changes else ""
        drivers = ", ".join(dict.fromkeys(str(device.get("driver", "")) for device in origin.devices)) or ""
        commit = f"{origin.commit[:10]}{changed}" if origin.commit else "unknown"
        lines.append(
            f"| {_cell(run.name)} | {commit} | {origin.bundle['sha256'][:16]} | {drivers} | {len(origin.kernels)} |"
        )
    return lines


def _cell(text: str) -> str:
    """Text that neither ends a cell of a table nor is taken for HTML."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
