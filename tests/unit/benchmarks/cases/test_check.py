from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cases.check import (
    Bounds,
    Errors,
    Verdict,
    judge,
    loosest,
    model_bounds,
    op_bounds,
    total,
)
from conformance.ops.compare import benchmark_bound, unit_roundoff
from toolchain.errors import ConformanceError


def off(**changes: float) -> Errors:
    """Errors of a result of 600 elements whose reference is about 1. All elements are right except those given."""
    return replace(Errors(reference_sq=600, largest=3, elements=600), **changes)


def test_errors_are_those_of_the_whole_however_it_is_cut() -> None:
    pieces = [Errors(1, 10, 0.5, 2, 0, 5), Errors(3, 20, 0.25, 3, 1, 5), Errors(0, 6, 0, 1, 1, 1)]
    assert total(pieces) == Errors(4, 36, 0.5, 3, 2, 11)
    assert total(pieces).frobenius == pytest.approx(1 / 3)


def test_what_is_not_finite_never_passes() -> None:
    with pytest.raises(ConformanceError, match="1 of 600"):
        judge("x", off(not_finite=1), Bounds(np.inf, np.inf))


def test_a_few_wrong_elements_fail_by_the_worst_and_many_by_the_norm() -> None:
    one, many = off(error_sq=0.01, worst=0.1), off(error_sq=0.24, worst=0.06)
    with pytest.raises(ConformanceError, match="an element"):
        judge("x", one, Bounds(1e-2, 0.05))
    with pytest.raises(ConformanceError, match="of its norm"):
        judge("x", many, Bounds(1e-2, 1))
    assert judge("x", one, Bounds(1e-2, 0.2)).worst == 0.1


def test_nothing_compared_is_wrong() -> None:
    with pytest.raises(ConformanceError, match="nothing"):
        judge("x", Errors(), Bounds(1, 1))


def test_a_zero_reference_has_an_absolute_error() -> None:
    assert Errors(error_sq=4 * 0.5**2, elements=4).frobenius == 1


def test_bounds_follow_the_conformance_tests() -> None:
    eager = Errors(error_sq=4e-4, reference_sq=1, worst=0.01, largest=2, elements=4)
    found = op_bounds("linear", "bf16", eager)
    rounding = (unit_roundoff("bf16") + 8 * unit_roundoff("f32")) * 2
    assert found == Bounds(benchmark_bound("norm", "bf16"), 0.02 + rounding)
    assert model_bounds("bf16", eager).frobenius == pytest.approx(0.04)  # twice that of the eager computation
    assert model_bounds("bf16", Errors(elements=1)).frobenius == benchmark_bound("norm", "bf16")


def test_the_loosest_verdict_used_most_of_its_bounds() -> None:
    near, far = Verdict(0.001, 0.01, 0.09, 0.1), Verdict(0.005, 0.01, 0.05, 0.1)
    assert loosest([far, near]) is near
