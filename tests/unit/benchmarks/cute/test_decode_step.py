"""Which steps are timed, and over what. The launches themselves need a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cute.decode_step import OPS, at_the_end, of_entry
from benchmarks.cute.kernels import SOURCE, TABLE
from conformance.cases import Case
from conformance.ops.inputs import make_inputs
from gpt.families.one_launch import OP_TEXTS, OPS_TEXTS, TEXTS
from toolchain.contract.entries import load_table
from toolchain.contract.entry import ops

SPECS = {spec.op: spec for spec in load_table(TABLE).entries(SOURCE)}
SMS = 132


@pytest.mark.parametrize("op", OPS)
def test_each_op_is_timed_with_all_sizes_that_it_has(op: str) -> None:
    case = of_entry(SPECS[op], SMS)
    needed = {dim for param in ops()[op].params for dim in param.dims}
    assert needed <= case.dims.keys() and case.dims["P"] == case.dims["X"] == 1024
    assert case.dims["N"] == (TEXTS if op in OPS_TEXTS else 1)
    assert 96 <= SPECS[op].grid_for(case.dims, SMS)[0] <= SMS


def test_all_texts_are_at_the_last_position() -> None:
    small = {"N": 3, "L": 2, "C": 64, "E": 192, "F": 256, "H": 1, "V": 16, "X": 8, "P": 8, "S": 1536, "G": 4}
    case = Case(OP_TEXTS, {**of_entry(SPECS[OP_TEXTS], SMS).dims, **small}, "")
    inputs = at_the_end(make_inputs(case, "bf16", seed=0))
    assert inputs.arrays["positions"].tolist() == [7, 7, 7]
    cache = inputs.outputs["cache"].astype(np.float32)
    assert not np.isnan(cache[:, :, :, :7]).any() and np.isnan(cache[:, :, :, 7]).all()
