"""What the page shows, as data that its script reads: lists of numbers and of texts, each text once.

A *cell* is an op, a source and a dtype; a *column* is what it ran on, or a target that it was only compiled for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from conformance.results.result import CellResult
from toolchain.contract.targets import targets

from .runs import Run, Times, machine


class Texts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


class Cells:
    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str, str], int] = {}

    def __call__(self, op: str, source: str, dtype: str) -> int:
        return self.numbers.setdefault((op, source, dtype), len(self.numbers))

    def named(self, name: str) -> int:
        op, source, dtype = name.rsplit("-", 2)
        return self(op, source, dtype)


class Columns:
    """Machines by name and target, and targets alone."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str], int] = {}

    def __call__(self, name: str, target: str) -> int:
        return self.numbers.setdefault((name, target), len(self.numbers))

    def all(self) -> list[dict[str, Any]]:
        return [{"name": name, "target": target} for name, target in self.numbers]


@dataclass
class Page:
    """The page's data while it is put together."""

    texts: Texts = field(default_factory=Texts)
    cells: Cells = field(default_factory=Cells)
    columns: Columns = field(default_factory=Columns)
    compiled: dict[int, dict[str, int]] = field(default_factory=dict)
    rows: list[list[Any]] = field(default_factory=list)
    times: list[list[Any]] = field(default_factory=list)

    def add_matrix(self, number: int, rows: Iterable[CellResult]) -> None:
        for row in rows:
            column = self.columns(machine(row.executor, row.target), row.target)
            self.rows.append([
                self.cells(row.op, row.source, row.dtype), column, number, self.texts(row.shape), row.status,
                _short(row.error), _short(row.bound), _short(row.time_us), _short(row.time_low_us),
                _short(row.time_high_us), self.texts(row.said), self.texts(row.worst),
                self.texts(" ".join(row.entries)),
            ])  # fmt: skip

    def add_times(self, number: int, bench: Times) -> None:
        column = self.columns(bench.machine, bench.target)
        for row, other in chosen(bench.rows):
            times = [_short(row[name]) for name in ("ours_ms", "ours_low", "ours_high", "floor_ms")]
            self.times.append([
                self.cells(op_of(row), row["source"], row["dtype"]), column, number, row["group"],
                self.texts(row["case"]), row["status"], *times, row["bound"], row["nbytes"], row["flops"],
                *self._beside(None if row is other else row), self.texts(row["detail"]), self.texts(row["entry"]),
                *self._beside(other),
            ])  # fmt: skip

    def _beside(self, row: Mapping[str, Any] | None) -> list[Any]:
        """What it was measured beside, and the ratio to that with its interval."""
        if row is None:
            return [self.texts(""), None, None, None]
        return [self.texts(row["peer"]), *(_short(row[name]) for name in ("ratio", "ratio_low", "ratio_high"))]

    def add_compiled(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        for name, by_target in counts.items():
            found = self.compiled.setdefault(self.cells.named(name), {})
            for target, count in by_target.items():
                found[target] = max(count, found.get(target, 0))


def op_of(row: Mapping[str, Any]) -> str:
    """The op of a benchmark's row, as the matrix calls it: what its case begins with, or `forward` for a whole pass."""
    return {"ops": str(row["case"]).split()[0], "decode": "decode"}.get(row["group"], "forward")


def chosen(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """For each case and source its row beside the fastest peer, else its first, and the one beside another bundle."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    others: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in rows:
        key = (row["case"], row["source"])
        if row["peer_kind"] == "against":
            others.setdefault(key, row)
        elif row["best"] or key not in found:
            found[key] = row
    return [(found.get(key, others.get(key, {})), others.get(key)) for key in {**found, **others}]


def _short(value: float | None) -> float | None:
    """Six digits: more are noise, and make the page larger."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def page_data(
    runs: Sequence[Run],
    resources: Mapping[str, Any] | None = None,
    difference: Any = None,
    support: Any = None,
    cache: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The data of a report. `resources`: of each cell by target, as `resources.of_bundle` makes them. `difference`,
    `support`: what `tilestack diff` and the support table wrote. `cache`: what the compile cache did, by compile."""
    page = Page()
    for name, target in _machines(runs):
        page.columns(name, target)
    for number, run in enumerate(runs):
        if run.matrix:
            page.add_matrix(number, run.matrix.rows)
        elif run.bench:
            page.add_times(number, run.bench)
        if run.origin:
            page.add_compiled(run.origin.bundle.get("cells", {}))
    for name, by_target in (resources or {}).items():
        page.add_compiled({name: dict.fromkeys(by_target, 1)})
    measured = {target for _, target in page.columns.numbers}
    compiled = {target for counts in page.compiled.values() for target in counts}
    for target in targets():
        if target in compiled - measured:
            page.columns("", target)
    return {
        "runs": [_run(run) for run in runs],
        "columns": page.columns.all(),
        "rows": page.rows,
        "times": page.times,
        "compiled": {str(cell): counts for cell, counts in page.compiled.items()},
        "resources": {str(page.cells.named(name)): found for name, found in (resources or {}).items()},
        "difference": difference,
        "support": support,
        "cache": None if cache is None else [_compile(counts) for counts in cache],
        "cells": [list(cell) for cell in page.cells.numbers],
        "texts": list(page.texts.numbers),
    }


def _machines(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """What the runs ran on, by name and target: GPUs first."""
    found = {(machine(row.executor, row.target), row.target) for run in runs if run.matrix for row in run.matrix.rows}
    found |= {(run.bench.machine, run.bench.target) for run in runs if run.bench}
    return sorted(found, key=lambda each: (not each[1].startswith("sm_"), each[1], each[0]))


def _compile(counts: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of one compile as a row of the page. `toolchain/caching/counts.py` describes the fields."""
    when = datetime.fromtimestamp(counts["time"], UTC).strftime("%Y-%m-%d %H:%M")
    return {"compile": when, **{name: count for name, count in counts.items() if name != "time"}}


def _run(run: Run) -> dict[str, Any]:
    origin = run.origin
    table: dict[str, Any] = {
        "file": run.name,
        "kind": "matrix" if run.matrix else "benchmarks",
        "date": run.date,
        "machines": run.machines,
        "summary": run.matrix.summary() if run.matrix else f"{len(run.results.rows)} timed",
        "environment": {name: str(value) for name, value in run.environment.items() if isinstance(value, str | int)},
        "ceilings": dict(run.bench.ceilings) if run.bench else {},
    }
    if origin is None:
        return table
    kernels = [[kernel.source, kernel.symbol, kernel.target, kernel.sha256] for kernel in origin.kernels]
    told = origin.to_json()
    return {**table, "origin": {**told, "kernels": kernels, "bundle": {**told["bundle"], "cells": {}}}}
