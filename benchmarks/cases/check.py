"""Decides if a result is right: it must be finite, and within bounds on the error of the whole (Frobenius norm) and of
the worst element.

The bounds are as in the conformance tests: twice the error of the same computation done op by op in the same dtype,
plus a rounding term (`conformance/tolerances.toml`). Errors are summed over pieces, so that a large result is never
copied to float64 as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from conformance.ops.compare import benchmark_bound, tolerance, unit_roundoff
from toolchain.errors import ConformanceError


@dataclass(frozen=True)
class Errors:
    """The errors of a result: sums of squares, largest magnitudes, and the number of elements that are not finite."""

    error_sq: float = 0.0
    reference_sq: float = 0.0
    worst: float = 0.0
    largest: float = 0.0
    not_finite: int = 0
    elements: int = 0

    def __add__(self, other: Errors) -> Errors:
        return Errors(
            self.error_sq + other.error_sq,
            self.reference_sq + other.reference_sq,
            max(self.worst, other.worst),
            max(self.largest, other.largest),
            self.not_finite + other.not_finite,
            self.elements + other.elements,
        )

    @property
    def frobenius(self) -> float:
        return math.sqrt(self.error_sq / self.reference_sq) if self.reference_sq else math.sqrt(self.error_sq)


def total(pieces: Iterable[Errors]) -> Errors:
    return sum(pieces, Errors())


@dataclass(frozen=True)
class Bounds:
    """The allowed errors: of the whole, relative to the reference's norm, and of each element, absolute."""

    frobenius: float
    worst: float


def op_bounds(op: str, dtype: str, eager: Errors) -> Bounds:
    """The bounds of one op, from the errors of the op-by-op computation in its dtype."""
    return Bounds(benchmark_bound("norm", dtype), _worst(op, dtype, eager))


def model_bounds(dtype: str, eager: Errors) -> Bounds:
    """The bounds of the whole model, where the roundings of all layers add up, in the op-by-op computation too. So the
    bound in the norm grows with its error."""
    return Bounds(max(benchmark_bound("norm", dtype), 2 * eager.frobenius), _worst("forward", dtype, eager))


def _worst(op: str, dtype: str, eager: Errors) -> float:
    row = tolerance(op)
    if row.exact:
        return 0.0
    return 2 * eager.worst + (unit_roundoff(dtype) + row.f32_ulps * unit_roundoff("f32")) * eager.largest


@dataclass(frozen=True)
class Verdict:
    """A result's errors and what was allowed."""

    frobenius: float
    frobenius_bound: float
    worst: float
    worst_bound: float

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def judge(what: str, found: Errors, bounds: Bounds) -> Verdict:
    """The verdict on a result. Raises ConformanceError if it is empty, not finite, or outside a bound."""
    if not found.elements:
        raise ConformanceError(f"{what}: there is nothing to compare")
    if found.not_finite:
        raise ConformanceError(f"{what}: {found.not_finite} of {found.elements} elements are not finite or not written")
    verdict = Verdict(found.frobenius, bounds.frobenius, found.worst, bounds.worst)
    if not verdict.frobenius <= bounds.frobenius:
        raise ConformanceError(f"{what}: off by {found.frobenius:.3g} of its norm, allowed {bounds.frobenius:.3g}")
    if not verdict.worst <= bounds.worst:
        raise ConformanceError(f"{what}: an element is off by {found.worst:.3g}, allowed {bounds.worst:.3g}")
    return verdict


def loosest(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that takes the largest share of its bounds."""
    return max(verdicts, key=lambda v: max(_share(v.frobenius, v.frobenius_bound), _share(v.worst, v.worst_bound)))


def _share(error: float, bound: float) -> float:
    return error / bound if bound else 0.0
