"""Results too large for numpy's float64 are compared with a trusted result, piece by piece."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from conformance.cases import Case
from conformance.ops.inputs import make_inputs
from toolchain.errors import ConformanceError
from toolchain.runtime import DeviceBuffer, open_executor
from tune.check import (
    BOUNDS,
    Reference,
    Trusted,
    for_timing,
    inputs_for,
    is_small,
    nbytes,
    poison,
    relative_error,
    results,
    upload,
)

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


DECODE = {"B": 1, "P": 40, "H": 2, "D": 32, "Z": 1, "TWO": 2}


def test_inputs_are_those_of_the_conformance_matrix() -> None:
    case, inputs = inputs_for("gelu", "bf16", {"M": 3, "N": 40}, seed=7)
    same = make_inputs(case, "bf16", 7)
    np.testing.assert_array_equal(inputs.arrays["x"], same.arrays["x"])
    assert for_timing(case, inputs) is inputs


def test_a_single_sequence_that_is_decoded_is_a_long_one() -> None:
    case, inputs = inputs_for("decode_attention", "bf16", DECODE, seed=1)
    assert inputs.arrays["positions"].tolist() == [39] and inputs.arrays["q"].shape == (1, 2, 32)
    assert inputs.outputs["k_cache"].shape == (1, 40, 2, 32)
    _, inputs = inputs_for("decode_attention", "bf16", {**DECODE, "B": 3}, seed=1)
    assert inputs.arrays["positions"].tolist() == [13, 26, 39], "of all lengths, none empty"
    timed = for_timing(case, inputs)
    assert timed.arrays["positions"].tolist() == [39, 39, 39] and timed.arrays["positions"].dtype == np.int32
    np.testing.assert_array_equal(timed.arrays["q"], inputs.arrays["q"])


def test_so_is_one_whose_key_was_appended_before() -> None:
    """Attention with grouped queries: timed on a full cache, as a benchmark's step is."""
    dims = {"B": 1, "P": 40, "G": 2, "Q": 3, "D": 32, "Z": 1, "TWO": 2}
    case, inputs = inputs_for("grouped_decode_attention", "bf16", dims, seed=1)
    assert inputs.arrays["positions"].tolist() == [39] and inputs.arrays["q"].shape == (1, 2, 3, 32)
    assert inputs.arrays["k_cache"].shape == (1, 40, 2, 32)
    _, inputs = inputs_for("grouped_decode_attention", "bf16", {**dims, "B": 3}, seed=1)
    assert for_timing(case, inputs).arrays["positions"].tolist() == [39, 39, 39]


def test_outputs_are_poisoned_before_each_check() -> None:
    executor = open_executor("cpu")
    case, inputs = inputs_for("gelu", "f32", {"M": 3, "N": 40}, seed=1)
    arguments = upload(case, inputs, executor)
    out = results(inputs, arguments)["out"]
    out.fill(1.0)
    poison(case, inputs, arguments)
    assert np.isnan(out.numpy()).all()
    assert nbytes(arguments) == 2 * 3 * 40 * 4


def test_an_output_that_is_read_too_gets_back_what_it_held() -> None:
    executor = open_executor("cpu")
    case, inputs = inputs_for("decode_attention", "f32", DECODE, seed=1)
    arguments = upload(case, inputs, executor)
    cache = results(inputs, arguments)["k_cache"]
    np.testing.assert_array_equal(cache.numpy(), inputs.outputs["k_cache"])
    cache.fill(1.0)
    poison(case, inputs, arguments)
    np.testing.assert_array_equal(cache.numpy(), inputs.outputs["k_cache"])
    assert np.isnan(results(inputs, arguments)["partial"].numpy()).all()


def test_attention_gets_slices_of_one_buffer() -> None:
    dims = {"B": 1, "T": 8, "S": 8, "H": 2, "D": 32}
    case, inputs = inputs_for("attention", "bf16", dims, seed=1)
    arguments = upload(case, inputs, open_executor("cpu"))
    q, k = arguments["q"], arguments["k"]
    assert isinstance(q, DeviceBuffer) and isinstance(k, DeviceBuffer)
    assert q.allocation is k.allocation and q.strides[1] == 3 * 2 * 32


WEIGHTS = {"linear_weight_f8": ml_dtypes.float8_e4m3fn, "swiglu_weight_i8": np.int8, "linear_residual_i8": np.int8}


@pytest.mark.parametrize("op", WEIGHTS)
def test_products_in_8_bits_are_checked(op: str) -> None:
    """Their reference has the scales, so that a result with another one for a column is wrong."""
    case, inputs = inputs_for(op, "bf16", {"M": 8, "K": 64, "N": 32}, seed=1)
    executor = open_executor("cpu")
    arguments = upload(case, inputs, executor)
    weight = arguments["gate" if "swiglu" in op else "weight"]
    assert isinstance(weight, DeviceBuffer) and weight.numpy().dtype == WEIGHTS[op]
    reference = Reference(case, "bf16", inputs)
    (_, eager) = reference.expected["out"]
    assert reference.check({"out": executor.from_numpy(eager)}) <= 1
    off = eager.copy()
    wide = off.astype(np.float32)
    loudest = np.argmax(np.abs(wide).sum(0))
    off[:, loudest] = (wide[:, loudest] * 1.5).astype(off.dtype)
    with pytest.raises(ConformanceError):
        reference.check({"out": executor.from_numpy(off)})


def test_results_in_8_bits_are_compared_with_a_trusted_one() -> None:
    executor = open_executor("cpu")
    case, inputs = inputs_for("linear_gelu_f8_to_f8", "bf16", {"M": 8, "K": 64, "N": 32}, seed=1)
    arguments = upload(case, inputs, executor)
    poison(case, inputs, arguments)
    out = results(inputs, arguments)["out"]
    assert np.isnan(out.numpy().astype(np.float32)).all()
    with pytest.raises(ConformanceError, match="left NaN in out"):
        Trusted.of("general", case, "bf16", {"out": out})
    right = numbers(64, 64, dtype=np.dtype(ml_dtypes.float8_e4m3fn))
    trusted = Trusted.of("general", case, "bf16", {"out": executor.from_numpy(right)})
    assert trusted.check({"out": executor.from_numpy(right)}) == 0
    half = (right.astype(np.float32) / 2).astype(right.dtype)
    with pytest.raises(ConformanceError, match="out differs"):
        trusted.check({"out": executor.from_numpy(half)})


def test_a_cache_in_8_bits_is_full_when_it_is_timed() -> None:
    dims = {"B": 1, "P": 40, "G": 2, "Q": 3, "D": 32, "Z": 1, "TWO": 2}
    case, inputs = inputs_for("grouped_decode_attention_f8", "bf16", dims, seed=1)
    assert inputs.arrays["positions"].tolist() == [39] and inputs.arrays["k_scales"].shape == (1, 2, 40)
    _, inputs = inputs_for("grouped_decode_attention_f8", "bf16", {**dims, "B": 3}, seed=1)
    assert np.isnan(inputs.arrays["v_scales"][0, :, 14:]).all(), "behind a text there may be anything"
    assert for_timing(case, inputs).arrays["positions"].tolist() == [39, 39, 39]
