"""Runs the cells of a matrix.toml: a kernel's result against its float64 reference, as our own ops are checked.

Inputs are seeded normal numbers, or integers of the table's range. The bound is that of conformance/tolerances.toml:
twice the largest error of the same reference computed in the kernel's own dtype, and one rounding to the output's; an
integer is exact. An output is NaN, or the smallest integer, before the launch, so that what is not written cannot pass.
The interpreter stops at undefined behaviour: that is an error of the cell.
"""

from __future__ import annotations

import importlib
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conformance.ops.compare import loosest
from conformance.results.result import CellResult, Results, Status
from toolchain.errors import ConformanceError, TilestackError, UsageError

from ..names import give_way
from .problem import SOURCE, Problem
from .table import Op


def run(
    ops: Sequence[Op], folder: Path, *, on: str, executor: str, target: str, seed: int,
    told: Callable[[CellResult], None],
) -> Results:  # fmt: skip
    """Every op, dtype and size. `folder`: where the modules are found. `on`: as a launch takes it; `executor` and
    `target` name it in the rows. Raises UsageError for a module that cannot be used."""
    started = time.perf_counter()
    rows: list[CellResult] = []
    for op in ops:
        launch, reference = functions(op, folder)
        for dtype in op.dtypes:
            for sizes in op.sizes:
                row = _cell(Problem(op, dtype, sizes, seed), launch, reference, on, executor, target)
                rows.append(row)
                told(row)
    return Results(environment(executor, seed, time.perf_counter() - started), rows)


def environment(executor: str, seed: int, seconds: float) -> dict[str, str]:
    return {
        "executors": executor, "sources": SOURCE, "seed": str(seed), "seconds": f"{seconds:.1f}",
        "python": platform.python_version(), "numpy": np.__version__, "machine": platform.platform(),
    }  # fmt: skip


def functions(op: Op, folder: Path) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`launch` and `reference` of an op's module. Raises UsageError."""
    give_way(folder)
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(op.module)
    except ImportError as error:
        raise UsageError(f"{op.name}: the module {op.module} cannot be imported from {folder}: {error}") from error
    finally:
        sys.path.remove(str(folder))
    if missing := [name for name in ("launch", "reference") if not callable(getattr(module, name, None))]:
        raise UsageError(f"{op.name}: {module.__file__} has no function {', '.join(missing)}")
    return module.launch, module.reference


def _cell(
    problem: Problem, launch: Callable[..., Any], reference: Callable[..., Any], on: str, executor: str, target: str
) -> CellResult:
    exact, eager = problem.expected(reference)
    outputs = problem.outputs()
    fixed = row_of(problem, executor, target)
    started = time.perf_counter()
    try:
        launch(**problem.inputs, **problem.op.numbers, **outputs, on=on)
        verdict = loosest(problem.compared(outputs, exact, eager))
    except TilestackError as error:
        return failed(fixed, error)
    took = 1e6 * (time.perf_counter() - started) if on == "cpu" else None
    return CellResult(*fixed, "passed", verdict.error, verdict.bound, took, worst=verdict.worst)


def row_of(problem: Problem, executor: str, target: str) -> tuple[str, str, str, str, str, str, str]:
    """How a row of results begins."""
    op, dtype = problem.op.name, problem.dtype
    return problem.cell(target), SOURCE, op, dtype, target, executor, problem.shape


def failed(fixed: tuple[str, str, str, str, str, str, str], error: TilestackError) -> CellResult:
    status: Status = "failed" if isinstance(error, ConformanceError) else "error"
    return CellResult(*fixed, status, detail=str(error))
