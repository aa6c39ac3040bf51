"""The cases' inputs are what the ops allow."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.cases import CASES, Case
from conformance.ops.inputs import make_inputs
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops


@pytest.mark.parametrize("case", [c for c in CASES if not c.gpu_only], ids=lambda c: f"{c.op} {c.shape}")
def test_inputs_bind_to_the_signature(case: Case) -> None:
    inputs = make_inputs(case, "bf16", seed=1)
    shapes = {name: array.shape for name, array in {**inputs.arrays, **inputs.outputs}.items()}
    for name in ops()[case.op].own:  # each rank has one
        assert shapes[name][0] == case.dims[ops()[case.op].ranks]
        shapes[name] = shapes[name][1:]
    assert EntrySpec("s", case.op, "py", "bf16").bind(shapes) == dict(case.dims)
    assert {*shapes, *inputs.scalars} == {p.name for p in ops()[case.op].params}
    match case.op:
        case "embedding":
            assert 0 <= inputs.arrays["tokens"].min() <= inputs.arrays["tokens"].max() == case.dims["V"] - 1
            assert inputs.arrays["positions"].max() < case.dims["P"]
        case "kv_append":
            assert inputs.arrays["positions"].max() + case.dims["T"] == case.dims["P"] or case.dims["B"] == 1
        case "decode_attention" | "decode_attention_unsplit":
            positions = inputs.arrays["positions"]
            assert (positions.min(), positions.max()) == (0, case.dims["P"] - 1)
            for batch, position in enumerate(positions):
                cache = inputs.outputs["k_cache"][batch].astype(np.float32)
                assert np.isfinite(cache[:position]).all()
                assert np.isnan(cache[position:]).all()
        case "grouped_decode_attention" | "grouped_decode_attention_unsplit" | "grouped_decode_attention_f8":
            for batch, position in enumerate(inputs.arrays["positions"]):
                caches = [inputs.arrays["k_cache"][batch].astype(np.float32)]
                caches += [inputs.arrays["v_scales"][batch].T] if "v_scales" in inputs.arrays else []
                assert all(np.isfinite(cache[: position + 1]).all() for cache in caches)
                assert all(np.isnan(cache[position + 1 :]).all() for cache in caches)
        case "paged_attention" | "paged_decode_attention":
            tables, positions = inputs.arrays["tables"], inputs.arrays["positions"]
            assert len(np.unique(tables)) == tables.size
            rows = inputs.arrays["k_cache"].astype(np.float32)[tables].reshape(len(tables), -1)
            size = rows.shape[1] // (case.dims["L"] * case.dims["PAGE"])
            for row, end in zip(rows, positions + case.dims["T"], strict=True):
                assert np.isfinite(row[: end * size]).all()
                assert np.isnan(row[end * size :]).all()
        case _:
            assert all(np.isfinite(a.astype(np.float32)).all() for a in inputs.arrays.values())


def test_outputs_are_poisoned_and_seeds_matter() -> None:
    case = next(c for c in CASES if c.op == "gelu")
    first, again, other = (make_inputs(case, "f32", seed) for seed in (1, 1, 2))
    assert np.isnan(first.outputs["out"]).all()
    assert (first.arrays["x"] == again.arrays["x"]).all()
    assert (first.arrays["x"] != other.arrays["x"]).any()


def test_a_large_weight_has_no_two_rows_alike_and_an_activation_its_own_first_row() -> None:
    case = Case("rms_linear", {"M": 1500, "K": 1024, "N": 1040, "Z": 1, "L": 1500}, "")
    arrays = make_inputs(case, "bf16", seed=1).arrays
    assert all(len({row.tobytes() for row in arrays[name]}) == len(arrays[name]) for name in ("x", "weight"))
    x, weight = (arrays[name].astype(np.float32) for name in ("x", "weight"))
    assert abs(weight.std() * 32 - 1) < 0.01
    assert abs(x[0]).max() < 0.02 < abs(x[1]).max()
