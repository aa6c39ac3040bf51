"""Results that pass and results that do not, with numbers made by hand."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from conformance.ops.compare import (
    Verdict,
    benchmark_bound,
    bound_for,
    compare,
    equal,
    has_markers,
    loosest,
    tolerance,
    unit_roundoff,
)
from conformance.reference.float64 import LEAST
from toolchain.contract.op import ops
from toolchain.errors import ConformanceError, UsageError

REFERENCE = np.array([[1.0, -2.0], [0.5, 4.0]])
EAGER = REFERENCE.astype(np.float32)


def test_the_bound_is_twice_the_eager_error_plus_rounding() -> None:
    eager = EAGER + np.float32(0.25)
    inside = tolerance("gelu").f32_ulps * 2.0**-24
    assert bound_for("gelu", "f32", REFERENCE, eager) == pytest.approx(0.5 + (2.0**-24 + inside) * 4.0, rel=1e-12)
    exact = REFERENCE.astype(ml_dtypes.bfloat16)
    assert bound_for("gelu", "bf16", REFERENCE, exact) == pytest.approx((2.0**-8 + inside) * 4.0, rel=1e-12)


def test_inside_and_just_outside_the_bound() -> None:
    bound = bound_for("gelu", "f32", REFERENCE, EAGER)
    result = EAGER.copy()
    assert compare("gelu", "f32", result, REFERENCE, EAGER).error == 0
    result[1, 0] += np.float32(2 * bound)
    with pytest.raises(ConformanceError, match=r"at \(1, 0\), wants 0.5"):
        compare("gelu", "f32", result, REFERENCE, EAGER)


def test_shape_before_dtype_before_values() -> None:
    wrong = np.full((2, 3), np.nan, np.float16)
    with pytest.raises(ConformanceError, match="shape"):
        compare("gelu", "f32", wrong, REFERENCE, EAGER)
    with pytest.raises(ConformanceError, match="dtype"):
        compare("gelu", "f32", wrong[:, :2], REFERENCE, EAGER)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite_never_passes(bad: float) -> None:
    result = EAGER.copy()
    result[0, 1] = bad
    with pytest.raises(ConformanceError, match=r"at \(0, 1\); 1 not finite"):
        compare("gelu", "f32", result, REFERENCE, EAGER)


def test_a_reference_that_is_not_finite_bounds_nothing() -> None:
    broken = EAGER.copy()
    broken[0, 0] = np.nan
    with pytest.raises(ConformanceError, match="bounds nothing"):
        compare("gelu", "f32", EAGER, REFERENCE, broken)


def test_exact_ops_allow_no_difference() -> None:
    reference = np.array([3.0, 1.0])
    eager = reference.astype(ml_dtypes.bfloat16)
    assert compare("kv_append", "bf16", eager, reference, eager).bound == 0
    with pytest.raises(ConformanceError):
        compare("kv_append", "bf16", np.nextafter(eager, np.zeros_like(eager)), reference, eager)


def test_the_loosest_verdict_took_most_of_its_bound() -> None:
    exact, small, large = Verdict(0, 0), Verdict(0.5e-6, 1e-6), Verdict(1, 100)
    assert (exact.share, small.share, large.share) == (0, 0.5, 0.01)
    assert loosest([exact, large]) == large  # the only one that is close to anything
    assert loosest([large, small]) == small  # whatever the scales of the two outputs
    assert loosest([exact, Verdict(0, 1), exact]) == Verdict(0, 1)  # which at least had something to compare with


def test_every_op_has_a_tolerance_with_a_reason() -> None:
    for op in (*ops(), "forward"):
        row = tolerance(op)
        assert row.why, f"{op} has no reason"
        assert not (row.exact and row.f32_ulps)
    with pytest.raises(UsageError, match="no row"):
        tolerance("conv")


@pytest.mark.parametrize(
    ("dtype", "numpy_dtype"), [("f32", np.float32), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16)]
)
def test_unit_roundoff_is_half_the_gap_above_one(dtype: str, numpy_dtype: type) -> None:
    assert unit_roundoff(dtype) == float(ml_dtypes.finfo(numpy_dtype).eps) / 2


def test_a_benchmark_has_the_bounds_of_its_table_and_no_other() -> None:
    assert benchmark_bound("norm", "bf16") > benchmark_bound("norm", "f16") > benchmark_bound("norm", "f32") > 0
    for name, dtype, said in (("norm", "i32", r"no i32 in \[benchmark\.norm\]"), ("conv", "bf16", "benchmark.conv")):
        with pytest.raises(UsageError, match=said):
            benchmark_bound(name, dtype)


@pytest.mark.parametrize("place", [0, 9, 10, 36])
def test_the_worst_element_is_found_in_whatever_part_it_is(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    monkeypatch.setattr("conformance.ops.compare.PART", 10)
    reference = np.linspace(-1, 1, 37)
    eager = reference.astype(np.float32)
    result = eager.copy()
    result[place] += np.float32(0.5)
    with pytest.raises(ConformanceError, match=rf"at \({place},\), .* \(1 of 37 outside\)"):
        compare("gelu", "f32", result, reference, eager)
    assert bound_for("gelu", "f32", reference, result) == pytest.approx(1.0, rel=1e-5)  # twice the eager error


@pytest.mark.parametrize("marker", [np.nan, LEAST])
def test_a_marker_must_stay(marker: float) -> None:
    reference = np.array([[1.0, marker], [2.0, marker]])
    eager = reference.astype(np.float32)
    assert has_markers("decode_attention", eager, reference)
    assert not has_markers("decode_attention", eager[:, :1], reference[:, :1])
    for other in (0.0, -marker if marker == LEAST else np.inf):
        result = eager.copy()
        result[1, 1] = other
        with pytest.raises(ConformanceError, match=r"at \(1, 1\), which must stay"):
            has_markers("decode_attention", result, reference)


@pytest.mark.parametrize("marker", [np.nan, LEAST])
def test_beside_markers_the_bound_is_that_of_the_numbers(monkeypatch: pytest.MonkeyPatch, marker: float) -> None:
    monkeypatch.setattr("conformance.ops.compare.PART", 3)
    reference, eager = np.array([1.0, -4.0, 2.0, marker, 3.0]), np.array([1.0, -4.0, 2.5, marker, 3.0], np.float32)
    numbers = np.array([True, True, True, False, True])
    plain = bound_for("gelu", "f32", reference[numbers], eager[numbers])
    assert bound_for("gelu", "f32", reference, eager, marked=True) == plain
    result = np.array([1.0, -4.0, 2.0, marker, 2.5], np.float32)
    verdict = compare("gelu", "f32", result, reference, eager, marked=True)
    assert (verdict.error, verdict.bound) == (0.5, plain) and "[4]" in verdict.worst
    result[1] = np.nan
    with pytest.raises(ConformanceError, match=r"nan at \(1,\); 1 not finite"):
        compare("gelu", "f32", result, reference, eager, marked=True)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_results_of_every_dtype_are_compared(dtype: type) -> None:
    reference = np.array([3.0, -8.0])
    result = reference.astype(dtype)
    assert compare("gelu", "f16", result, reference, result).error == 0
    with pytest.raises(ConformanceError, match=r"at \(1,\), wants -8: off by 16"):
        compare("gelu", "f16", np.abs(result), reference, result)


def test_equal_is_for_exact_outputs_without_any_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.ops.compare.PART", 4)
    cache = np.array([1.0, np.nan, 3.0, 4.0, 5.0, np.nan])
    result = cache.astype(np.float32)
    assert equal("decode_attention", result, cache, "k_cache") == Verdict(0.0, 0.0)
    assert equal("decode_attention", result, cache, "partial") is None  # has a bound
    for place in range(6):
        for other in (7.0, np.nan, np.inf):
            wrong = result.copy()
            wrong[place] = other
            if not np.array_equal(wrong, result, equal_nan=True):
                assert equal("decode_attention", wrong, cache, "k_cache") is None
    assert equal("kv_append", np.array([np.inf]), np.array([np.inf]), "k_cache") is None
    assert equal("kv_append", result[:3], cache, "k_cache") is None


def test_equal_of_one_dtype_is_of_its_bits() -> None:
    cache = np.array([1.0, np.nan, -3.0], ml_dtypes.bfloat16)
    assert equal("kv_append", cache.copy(), cache, "k_cache") == Verdict(0.0, 0.0)
    for wrong in ([1.0, np.nan, 3.0], [1.0, 2.0, -3.0], [np.nan, np.nan, -3.0]):
        assert equal("kv_append", np.array(wrong, cache.dtype), cache, "k_cache") is None
    cache[2] = np.inf
    assert equal("kv_append", cache.copy(), cache, "k_cache") is None
