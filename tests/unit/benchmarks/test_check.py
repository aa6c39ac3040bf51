from __future__ import annotations

import numpy as np
import pytest

from benchmarks.check import (
    FROBENIUS,
    Bounds,
    Errors,
    Verdict,
    errors,
    judge,
    loosest,
    model_bounds,
    op_bounds,
    total,
)
from gpt.conformance.compare import unit_roundoff
from toolchain.errors import ConformanceError

RNG = np.random.default_rng(0)
REFERENCE = RNG.standard_normal((20, 30))


def test_errors_are_those_of_the_whole_however_it_is_cut() -> None:
    result = (REFERENCE + 1e-3 * RNG.standard_normal(REFERENCE.shape)).astype(np.float32)
    whole = errors(result, REFERENCE)
    pieces = total(errors(result[i : i + 7], REFERENCE[i : i + 7]) for i in range(0, 20, 7))
    assert pieces.frobenius == pytest.approx(whole.frobenius)
    assert (pieces.worst, pieces.largest, pieces.elements) == (whole.worst, whole.largest, 600)
    exact = np.linalg.norm(result.astype(np.float64) - REFERENCE) / np.linalg.norm(REFERENCE)
    assert whole.frobenius == pytest.approx(exact)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_never_passes(bad: float) -> None:
    result = REFERENCE.copy()
    result[3, 4] = bad
    found = errors(result, REFERENCE)
    assert found.not_finite == 1
    with pytest.raises(ConformanceError, match="1 of 600"):
        judge("x", found, Bounds(np.inf, np.inf))


def test_a_few_wrong_elements_fail_by_the_worst_and_many_by_the_norm() -> None:
    one = REFERENCE.copy()
    one[0, 0] += 0.1
    with pytest.raises(ConformanceError, match="an element"):
        judge("x", errors(one, REFERENCE), Bounds(1e-2, 0.05))
    with pytest.raises(ConformanceError, match="of its norm"):
        judge("x", errors(REFERENCE * 1.02, REFERENCE), Bounds(1e-2, 1))
    assert judge("x", errors(one, REFERENCE), Bounds(1e-2, 0.2)).worst == pytest.approx(0.1)


def test_nothing_compared_is_wrong() -> None:
    with pytest.raises(ConformanceError, match="nothing"):
        judge("x", Errors(), Bounds(1, 1))
    with pytest.raises(ConformanceError, match="shape"):
        errors(REFERENCE[:1], REFERENCE)


def test_a_zero_reference_has_an_absolute_error() -> None:
    assert errors(np.full(4, 0.5), np.zeros(4)).frobenius == 1


def test_bounds_follow_the_conformance_tests() -> None:
    eager = Errors(error_sq=4e-4, reference_sq=1, worst=0.01, largest=2, elements=4)
    found = op_bounds("linear", "bf16", eager)
    rounding = (unit_roundoff("bf16") + 8 * unit_roundoff("f32")) * 2
    assert found == Bounds(FROBENIUS["bf16"], 0.02 + rounding)
    assert model_bounds("bf16", eager).frobenius == pytest.approx(0.04)  # twice that of the eager computation
    assert model_bounds("bf16", Errors(elements=1)).frobenius == FROBENIUS["bf16"]


def test_the_loosest_verdict_used_most_of_its_bounds() -> None:
    near, far = Verdict(0.001, 0.01, 0.09, 0.1), Verdict(0.005, 0.01, 0.05, 0.1)
    assert loosest([far, near]) is near
