"""Which steps are timed, and over what. The launches themselves need a GPU."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.cute.decode_step import OPS, alike_in_sizes, at_the_end, of_entry
from benchmarks.cute.kernels import SOURCE, TABLE
from conformance.cases import Case
from conformance.ops.inputs import make_inputs
from gpt.config import PRESETS
from gpt.families.one_launch import OP_TEXTS, OPS_TEXTS, TEXTS
from kernels_cute.entries import made
from toolchain.contract.entries import load_table
from toolchain.contract.entry import ops

ALL = [spec for spec in load_table(TABLE).entries(SOURCE) if spec.op in OPS]
SPECS = {spec.op: spec for spec in ALL}
SMS = 132
SHARED = 227 * 1024  # bytes that a block may have


@pytest.mark.parametrize("op", OPS)
def test_each_op_is_timed_with_all_sizes_that_it_has(op: str) -> None:
    case = of_entry(SPECS[op], SMS)
    needed = {dim for param in ops()[op].params for dim in param.dims}
    assert needed <= case.dims.keys() and case.dims["P"] == case.dims["X"] == 1024
    assert case.dims["N"] == (TEXTS if op in OPS_TEXTS else 1)
    assert 96 <= SPECS[op].grid_for(case.dims, SMS)[0] <= SMS


def test_models_are_timed_apart() -> None:
    entries = [SimpleNamespace(spec=spec) for spec in ALL]
    alike = alike_in_sizes(entries, partial(of_entry, sms=SMS))  # pyright: ignore[reportArgumentType]
    found = [{(each.spec.op, each.spec.constants["L"]) for each in kind} for _, kind in alike]
    assert all(len(kind) == 1 for kind in found) and len(alike) == len(OPS) + 3


@pytest.mark.parametrize("name", ["medium", "large", "xl"])
def test_a_wider_model_fits_a_gpu(name: str) -> None:
    """Of 132 multiprocessors that take 30 clusters of 4. A block's hidden units and the others' are all that it has."""
    (spec,) = (spec for spec in ALL if spec.symbol == f"decode_step_{name}_bf16")
    wanted, case, traced = PRESETS[name], of_entry(spec, SMS), made(spec)
    assert case.dims.items() >= {"L": wanted.n_layer, "C": wanted.n_embd, "H": wanted.n_head}.items()
    assert traced.kernel.shared_bytes <= SHARED and traced.together == 4
    assert spec.grid_for(case.dims, SMS)[0] == 120


def test_all_texts_are_at_the_last_position() -> None:
    small = {"N": 3, "L": 2, "C": 64, "E": 192, "F": 256, "H": 1, "V": 16, "X": 8, "P": 8, "S": 1536, "G": 4}
    case = Case(OP_TEXTS, {**of_entry(SPECS[OP_TEXTS], SMS).dims, **small}, "")
    inputs = at_the_end(make_inputs(case, "bf16", seed=0))
    assert inputs.arrays["positions"].tolist() == [7, 7, 7]
    cache = inputs.outputs["cache"].astype(np.float32)
    assert not np.isnan(cache[:, :, :, :7]).any() and np.isnan(cache[:, :, :, 7]).all()
