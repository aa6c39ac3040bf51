"""Is a result right, where numpy's float64 would take too long: against a trusted result, piece by piece."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from conformance.cases import Case
from toolchain.errors import ConformanceError
from toolchain.runtime import open_executor
from tune.check import BOUNDS, Reference, Trusted, is_small, relative_error
from tune.inputs import inputs_for

BF16 = np.dtype(ml_dtypes.bfloat16)
CASE = Case("gelu", {"M": 4, "N": 8}, "")


def numbers(*shape: int, dtype: np.dtype[np.generic] = BF16) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float16), np.dtype(np.float32)])
def test_the_error_is_relative_to_the_norm(dtype: np.dtype[np.generic]) -> None:
    wanted = numbers(100, 33, dtype=dtype)
    assert relative_error(wanted.copy(), wanted) == 0
    off = (wanted.astype(np.float32) * 1.1).astype(dtype)
    assert relative_error(off, wanted) == pytest.approx(0.1, rel=0.05)
    rounded = wanted.astype(np.float32) + 1e-3 * np.abs(wanted.astype(np.float32))
    assert relative_error(rounded.astype(dtype), wanted) < BOUNDS["bf16"]


def test_one_wrong_tile_of_a_large_result_is_found() -> None:
    wanted = numbers(2048, 4096)
    got = wanted.copy()
    got[512:528, 128:192] = 0  # 16 x 64 of eight million
    assert relative_error(got, wanted) > BOUNDS["bf16"]


def test_what_nobody_wrote_never_passes() -> None:
    wanted = numbers(64, 64)
    for value in (np.nan, np.inf, -np.inf):
        got = wanted.copy()
        got[63, 63] = value
        assert relative_error(got, wanted) == math.inf
    assert relative_error(wanted[:32], wanted) == relative_error(wanted.astype(np.float32), wanted) == math.inf


def test_where_there_is_no_number_it_must_stay_so() -> None:
    """A cache holds NaN past its sequences, the score of no position is -1e30."""
    wanted = numbers(8, 8, dtype=np.dtype(np.float32))
    wanted[0, :4], wanted[1, :4] = np.nan, -1e30
    assert relative_error(wanted.copy(), wanted) == 0
    for row, value in ((0, 0.0), (1, 0.0), (1, np.nan)):
        got = wanted.copy()
        got[row, 0] = value
        assert relative_error(got, wanted) == math.inf
    got = wanted.copy()
    got[2, 0] += 100
    assert relative_error(got, wanted) > 1, "the rest is compared all the same"


def test_integers_and_nothing() -> None:
    a = np.arange(5, dtype=np.int32)
    assert (relative_error(a, a.copy()), relative_error(a + 1, a)) == (0, math.inf)
    zeros = np.zeros((3, 0), np.float32)
    assert relative_error(zeros, zeros) == 0
    assert relative_error(np.ones(4, np.float32), np.zeros(4, np.float32)) == 2


def test_a_trusted_result_is_itself_checked() -> None:
    executor = open_executor("cpu")
    right = executor.from_numpy(numbers(4, 8))
    trusted = Trusted.of("general", CASE, "bf16", {"out": right})
    assert trusted.check({"out": right}) == 0
    off = executor.from_numpy((right.numpy().astype(np.float32) * 1.05).astype(BF16))
    with pytest.raises(ConformanceError, match=r"out differs from that of general by 0\.0\d+, allowed 0\.01"):
        trusted.check({"out": off})
    right.fill(float("nan"))
    with pytest.raises(ConformanceError, match="general, which variants are compared with, left NaN in out"):
        Trusted.of("general", CASE, "bf16", {"out": right})


def test_small_shapes_have_the_conformance_matrixs_reference() -> None:
    assert is_small(CASE) and not is_small(Case("linear", {"M": 64, "K": 768, "N": 2304}, ""))
    case, inputs = inputs_for("gelu", "bf16", CASE.dims, 1)
    reference = Reference(case, "bf16", inputs)
    executor = open_executor("cpu")
    (_, eager) = reference.expected["out"]
    assert 0 < reference.check({"out": executor.from_numpy(eager)}) <= 1
    with pytest.raises(ConformanceError):
        reference.check({"out": executor.from_numpy(-eager)})
