"""Products of 8-bit floats in CuTe: their instructions, and their entries as machine code."""

from __future__ import annotations

import re

import pytest

from conformance.cases import CASES
from kernels_cute import SOURCE
from kernels_cute.products.scaled import SCALED
from tests.compile.compiled import ptxas_says
from tests.compile.conftest import MakeArtifact
from toolchain.contract.entry import EntrySpec

ENTRIES = [spec for spec in SOURCE.entries() if spec.op in SCALED]


@pytest.mark.parametrize("spec", ENTRIES, ids=lambda spec: spec.symbol)
def test_an_entry_multiplies_8_bits_and_spills_nothing(spec: EntrySpec, artifact: MakeArtifact) -> None:
    made = artifact(spec)
    ptx = made.payload.decode()
    c = spec.constants
    rows = c["BM"] // 64 if c["APART"] else 1  # of 64, that a warpgroup multiplies
    products = re.findall(rf"wgmma\.mma_async\S*\.m64n{c['BN']}k32\.f32\.e4m3\.e4m3", ptx)
    beside = c["BN"] // 64 + 1  # steps of a tile beside whose products the one before leaves registers
    first_run = beside + (c["RUN"] > beside)
    steps = first_run + 2 if c["RUN"] else 2  # the first of a sum, and the others
    assert len(products) == steps * rows * 128 // 32
    if c["RUN"]:
        assert ptx.index("wgmma.mma_async") < ptx.index("stmatrix") < ptx.index("wgmma.wait_group")
    assert [said.box for said in made.form.maps][:2] == [(c["BM"], 128), (c["BN"], 128)]
    said = ptxas_says(ptx)
    assert "0 bytes spill stores, 0 bytes spill loads" in said
    assert "serialized" not in said


def test_every_op_has_an_entry_for_a_long_k_or_is_never_given_one() -> None:
    longest = {spec.op for spec in ENTRIES if "K > 2048" in spec.where}
    assert {spec.op for spec in ENTRIES} == set(SCALED)
    assert longest == {"linear_f8", "linear_residual_f8"}  # others multiply an embedding's width
    assert all(
        "K <= 2048" in spec.where or 0 < spec.constants["RUN"] * spec.constants["BK"] <= 2048 for spec in ENTRIES
    )


def test_every_entry_is_checked_by_a_case_on_a_gpu() -> None:
    chosen: set[str] = set()
    for case in CASES:
        fitting = [spec for spec in ENTRIES if spec.op == case.op and not case.misaligned and not spec.unmet(case.dims)]
        chosen |= {spec.symbol for spec in fitting[:1]}
    assert chosen == {spec.symbol for spec in ENTRIES}
