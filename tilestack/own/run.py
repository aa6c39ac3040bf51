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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.compare import Tolerance, Verdict, compare, loosest
from conformance.result import CellResult, Results, Status
from toolchain.errors import ConformanceError, TilestackError, UsageError

from .table import DTYPES, INTEGERS, Op
from .table import Array as OwnArray

Array = NDArray[np.generic]
SOURCE = "own"


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
                row = _cell(op, dtype, sizes, launch, reference, on, executor, target, seed)
                rows.append(row)
                told(row)
    environment = {
        "executors": executor, "sources": SOURCE, "seed": str(seed), "seconds": f"{time.perf_counter() - started:.1f}",
        "python": platform.python_version(), "numpy": np.__version__, "machine": platform.platform(),
    }  # fmt: skip
    return Results(environment, rows)


def functions(op: Op, folder: Path) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`launch` and `reference` of an op's module. Raises UsageError."""
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
    op: Op, dtype: str, sizes: Mapping[str, int], launch: Callable[..., Any], reference: Callable[..., Any],
    on: str, executor: str, target: str, seed: int,
) -> CellResult:  # fmt: skip
    place = target or "cpu"
    shape = " ".join(f"{name}={size}" for name, size in sizes.items())
    fixed = (f"{op.name}-{SOURCE}-{dtype}-{place}", SOURCE, op.name, dtype, target, executor, shape)
    rng = np.random.default_rng(seed)
    arrays = {name: _drawn(array, array.storage(dtype), sizes, rng) for name, array in op.inputs.items()}
    outputs = {name: _empty(array.shape(sizes), array.storage(dtype)) for name, array in op.outputs.items()}
    wide = {name: _widened(array) for name, array in arrays.items()}
    exact, eager = (_computed(op, reference, values) for values in (wide, arrays))
    started = time.perf_counter()
    try:
        launch(**arrays, **op.numbers, **outputs, on=on)
        verdict = loosest(_compared(op, dtype, outputs, exact, eager))
    except TilestackError as error:
        status: Status = "failed" if isinstance(error, ConformanceError) else "error"
        return CellResult(*fixed, status, detail=str(error))
    took = 1e6 * (time.perf_counter() - started) if on == "cpu" else None
    return CellResult(*fixed, "passed", verdict.error, verdict.bound, took, worst=verdict.worst)


def _drawn(array: OwnArray, dtype: str, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
    """An input of this dtype."""
    if dtype in INTEGERS:
        return rng.integers(*array.range(sizes), array.shape(sizes)).astype(INTEGERS[dtype])
    return rng.standard_normal(array.shape(sizes)).astype(DTYPES[dtype])


def _empty(shape: tuple[int, ...], dtype: str) -> Array:
    """An output before the launch: what no kernel should write."""
    fill = np.iinfo(INTEGERS[dtype].name).min if dtype in INTEGERS else np.nan
    return np.full(shape, fill, DTYPES[dtype])


def _widened(array: Array) -> Array:
    """For the reference that is taken as exact. The sums and products of narrow integers are not to overflow there."""
    return array.astype(np.int64 if np.issubdtype(array.dtype, np.integer) else np.float64)


def _computed(op: Op, reference: Callable[..., Any], arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of the reference by name: it returns one array, or a tuple of them in the table's order."""
    made = reference(**arrays, **op.numbers)
    made = made if isinstance(made, tuple) else (made,)
    if len(made) != len(op.outputs):
        raise UsageError(
            f"{op.name}: its reference returns {len(made)} arrays, the table has {len(op.outputs)} outputs"
        )
    return dict(zip(op.outputs, map(np.asarray, made), strict=True))


def _compared(
    op: Op, dtype: str, outputs: Mapping[str, Array], exact: Mapping[str, Array], eager: Mapping[str, Array]
) -> Iterator[Verdict]:
    for name, result in outputs.items():
        storage = op.outputs[name].storage(dtype)
        allowed = Tolerance(op.f32_ulps, storage in INTEGERS, (), op.why)
        same = eager[name].astype(result.dtype)  # numpy may have computed in a wider dtype
        yield compare(op.name, storage, result, exact[name], same, name, allowed)
        if storage in INTEGERS and not np.array_equal(result, exact[name]):  # which float64 does not tell apart
            raise ConformanceError(f"{op.name} {storage}: {name} differs from the reference beyond 2^53")
