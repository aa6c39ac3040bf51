"""Arguments as the conformance matrix has them, and where tuning wants others."""

from __future__ import annotations

import numpy as np

from conformance.inputs import make_inputs
from toolchain.runtime import DeviceBuffer, open_executor
from tune.inputs import for_timing, inputs_for, nbytes, poison, results, upload

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
