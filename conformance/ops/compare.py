"""Decides if a result is right: checks its shape, its dtype, that it is finite, then the bound of `tolerances.toml`."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from conformance.reference.float64 import LEAST
from toolchain import tables
from toolchain.errors import ConformanceError, UsageError

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Tolerance:
    """A row of `tolerances.toml`. `f32_ulps` is in units of f32's unit roundoff. `exact` allows no difference in any
    output, `exact_outputs` no difference in the outputs it lists."""

    f32_ulps: float
    exact: bool
    exact_outputs: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Verdict:
    """The largest error of a result and what was allowed, both absolute. `worst`: the element with that error."""

    error: float
    bound: float
    worst: str = field(default="", compare=False)

    @property
    def share(self) -> float:
        """How much of the bound the error takes: 1 is all of it. An exact result, bounded by 0, takes none."""
        return self.error / self.bound if self.bound else 0.0


def loosest(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict whose error takes the largest share of its bound; in a tie, the one with the larger bound.

    Absolute errors are not compared, because outputs may differ in scale.
    """
    return max(verdicts, key=lambda v: (v.share, v.bound))


TOLERANCES = Path(__file__).parents[1] / "tolerances.toml"
ROW: dict[str, tables.Check] = {
    "f32_ulps": lambda value: None if tables.is_number(value) else "a number",
    "exact": tables.flag,
    "exact_outputs": tables.texts,
    "why": tables.text,
}
BENCHMARK: dict[str, tables.Check] = {"relative": tables.table_of(tables.is_number, "numbers"), "why": tables.text}


@functools.cache
def _table() -> dict[str, dict[str, dict[str, object]]]:
    """All of `tolerances.toml`. Raises UsageError that begins with the file and line of a row that is wrong."""
    table = tables.read_table(TOLERANCES)
    rounding = tables.table_of(tables.is_number, "numbers")
    keys = {"unit_roundoff": rounding, "op": tables.is_table, "benchmark": tables.is_table}
    tables.check_keys(table, keys, str(TOLERANCES), ("benchmark",))
    for kind, columns in (("op", ROW), ("benchmark", BENCHMARK)):
        for name, row in table.get(kind, {}).items():
            where = f"{tables.place(TOLERANCES, tables.header(f'{kind}.{name}'))}: {kind}.{name}"
            if wanted := tables.is_table(row):
                raise UsageError(f"{where} is {row!r}, not {wanted}")
            tables.check_keys(row, columns, where, ("f32_ulps", "exact", "exact_outputs"))
    return table


def tolerance(op: str) -> Tolerance:
    """The row of an op. Raises UsageError if the op has none: no op passes without a stated tolerance."""
    row = _table()["op"].get(op)
    if row is None:
        raise UsageError(f"{TOLERANCES} has no row [op.{op}]", hint="add one, with its reason")
    outputs = tuple(cast("list[str]", row.get("exact_outputs", [])))
    return Tolerance(float(str(row.get("f32_ulps", 0))), bool(row.get("exact", False)), outputs, str(row["why"]))


def benchmark_bound(name: str, dtype: str) -> float:
    """The largest relative error of what a benchmark computes. Raises UsageError if the table has none."""
    row = _table().get("benchmark", {}).get(name, {})
    found = cast("dict[str, float]", row.get("relative", {})).get(dtype)
    if found is None:
        raise UsageError(f"{TOLERANCES} has no {dtype} in [benchmark.{name}]", hint="add it, with its reason")
    return float(found)


def unit_roundoff(dtype: str) -> float:
    """Raises UsageError if the table has none for the dtype."""
    found = _table()["unit_roundoff"].get(dtype)
    if found is None:
        raise UsageError(
            f"{TOLERANCES}: [unit_roundoff] has no {dtype}", hint="add it: half the gap between 1 and the next number"
        )
    return float(str(found))


def bound_for(
    op: str, dtype: str, reference: Array, eager: Array, output: str = "", row: Tolerance | None = None, *,
    marked: bool = False,
) -> float:  # fmt: skip
    """The allowed largest absolute error: see the head of `tolerances.toml`. `row`: of an op that is not in there.
    `marked`: see `compare`."""
    row = row or tolerance(op)
    if row.exact or output in row.exact_outputs or reference.size == 0:
        return 0.0
    eager_error, _ = _largest_gap(eager, reference, marked=marked)
    largest = _largest(reference) if marked else float(np.maximum(float(reference.max()), -float(reference.min())))
    bound = 2 * eager_error + (unit_roundoff(dtype) + row.f32_ulps * unit_roundoff("f32")) * largest
    if not np.isfinite(bound):
        raise ConformanceError(f"{op} {dtype}: the reference or the eager result is not finite, so it bounds nothing")
    return bound


def has_markers(op: str, result: Array, reference: Array) -> bool:
    """Whether the reference has markers, which are no numbers to compare: NaN (a place of a cache that the op must
    leave alone) or LEAST (the largest score of an empty span). Raises ConformanceError if the result has anything else
    than the marker there."""
    if result.shape != reference.shape or not np.issubdtype(reference.dtype, np.floating):
        return False
    found, wanted, any_marked = result.reshape(-1), reference.reshape(-1), False
    for start in range(0, wanted.size, PART):
        values = wanted[start : start + PART]
        if (nothing := _markers(values)) is None:
            continue
        any_marked, have, want = True, found[start : start + PART][nothing], values[nothing]
        differs = ~((have == want.astype(result.dtype)) | (np.isnan(have.astype(np.float64)) & np.isnan(want)))
        if differs.any():
            place = start + int(np.flatnonzero(nothing)[int(np.argmax(differs))])
            where = tuple(int(i) for i in np.unravel_index(place, result.shape))
            raise ConformanceError(f"{op}: {result[where]} at {where}, which must stay {reference[where]}")
    return any_marked


def _markers(values: Array) -> NDArray[np.bool_] | None:
    """Where some numbers of a reference are markers; None if none is."""
    if values.min() > LEAST:  # the smallest of numbers and NaN is NaN
        return None
    nothing = np.isnan(values) | (values == LEAST)
    return nothing if nothing.any() else None


def _largest(reference: Array) -> float:
    """The largest absolute value but for markers."""
    flat, largest = reference.reshape(-1), 0.0
    for start in range(0, flat.size, PART):
        values = flat[start : start + PART]
        nothing = _markers(values)
        sizes = np.abs(values if nothing is None else values[~nothing])
        largest = float(np.maximum(largest, sizes.max(initial=0.0)))  # NaN stays
    return largest


PART = 1 << 15  # elements that are compared at once, in the processor's cache


def _largest_gap(a: Array, b: Array, *, marked: bool = False) -> tuple[float, int]:
    """The largest |a - b| of two arrays of one shape, in float64, and its place in them flattened; the first NaN.
    `marked`: but for the markers in b."""
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    largest, place = -1.0, 0
    for start in range(0, a.size, PART):
        part = slice(start, start + PART)
        gaps = flat_a[part].astype(np.float64)
        gaps -= flat_b[part].astype(np.float64, copy=False)
        np.abs(gaps, out=gaps)
        if marked and (nothing := _markers(flat_b[part])) is not None:
            gaps[nothing] = 0.0
        worst = int(np.argmax(gaps))
        if np.isnan(gaps[worst]):
            return float("nan"), start + worst
        if gaps[worst] > largest:
            largest, place = float(gaps[worst]), start + worst
    return largest, place


def equal(op: str, result: Array, reference: Array, output: str) -> Verdict | None:
    """The verdict of an output that must be exact and is, with the same NaN as markers. None for any other:
    `has_markers` and `compare` then say what is wrong, and take longer."""
    row = tolerance(op)
    if not (row.exact or output in row.exact_outputs) or result.shape != reference.shape:
        return None
    flat, wanted = result.reshape(-1), reference.reshape(-1)
    same = flat.dtype == wanted.dtype and np.array_equal(_bits(flat), _bits(wanted))
    if same and not np.isinf(wanted).any():
        return Verdict(0.0, 0.0, f"{output or 'out'} has no difference")
    for start in range(0, result.size, PART):
        a, b = (array[start : start + PART].astype(np.float64, copy=False) for array in (flat, wanted))
        if np.isinf(b).any() or not np.array_equal(a, b, equal_nan=True):
            return None
    return Verdict(0.0, 0.0, f"{output or 'out'} has no difference")


def _bits(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


def compare(
    op: str,
    dtype: str,
    result: Array,
    reference: Array,
    eager: Array,
    output: str = "",
    row: Tolerance | None = None,
    *,
    marked: bool = False,
) -> Verdict:
    """Compare a kernel's `result` with the float64 `reference` and the same-dtype `eager` result, all of one shape.
    `output` is the name of the output, for ops some of whose outputs must be exact. `row`: the tolerance of an op that
    `tolerances.toml` does not have. `marked`: the reference has markers, which `has_markers` has compared.

    Raises ConformanceError that names the worst element. NaN never passes.
    """
    if result.shape != reference.shape:
        raise ConformanceError(f"{op} {dtype}: shape {result.shape}, wants {reference.shape}")
    if result.dtype != eager.dtype:
        raise ConformanceError(f"{op} {dtype}: dtype {result.dtype}, wants {eager.dtype}")
    if result.size == 0:
        return Verdict(0.0, 0.0)
    error, place = _largest_gap(result, reference, marked=marked)
    if not np.isfinite(error) and (odd := ~np.isfinite(result) & ~(np.isnan(reference) & marked)).any():
        where = tuple(int(i) for i in np.argwhere(odd)[0])
        raise ConformanceError(f"{op} {dtype}: {float(result[where])} at {where}; {int(odd.sum())} not finite")
    bound = bound_for(op, dtype, reference, eager, output, row, marked=marked)
    worst = tuple(int(i) for i in np.unravel_index(place, result.shape))
    got, wants = float(result[worst]), float(reference[worst])
    verdict = Verdict(error, bound, f"{output or 'out'}{list(worst)} is {got:.9g}, wants {wants:.9g}")
    if verdict.error > bound:
        outside = int((np.abs(result.astype(np.float64) - reference.astype(np.float64)) > bound).sum())
        raise ConformanceError(
            f"{op} {dtype}: {got:.9g} at {worst}, wants {wants:.9g}: "
            f"off by {verdict.error:.3g}, allowed {bound:.3g} ({outside} of {result.size} outside)"
        )
    return verdict
