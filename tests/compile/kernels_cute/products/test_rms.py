"""Products that norms are part of, in CuTe: their entries as machine code."""

from __future__ import annotations

import re

import pytest

from conformance.cases import CASES
from kernels_cute import SOURCE
from kernels_cute.products.rms import RMS
from tests.compile.compiled import ptxas_says
from tests.compile.conftest import MakeArtifact
from toolchain.contract.entry import EntrySpec

ENTRIES = [spec for spec in SOURCE.entries() if spec.op in {*RMS, "linear_residual"} and "wgmma" in spec.symbol]


@pytest.mark.parametrize("spec", [spec for spec in ENTRIES if spec.dtype == "bf16"], ids=lambda spec: spec.symbol)
def test_an_entry_spills_nothing_and_reads_a_residual_by_tma(spec: EntrySpec, artifact: MakeArtifact) -> None:
    made = artifact(spec)
    ptx = made.payload.decode()
    assert ".local" not in ptx
    assert ("ldmatrix" in ptx) == ("residual" in spec.op)
    assert len(made.form.maps) == 3 + ("residual" in spec.op) + (spec.constants["BN"] % 64 > 0)
    said = ptxas_says(ptx)
    assert "0 bytes spill stores, 0 bytes spill loads" in said
    assert "serialized" not in said


@pytest.mark.parametrize("spec", ENTRIES, ids=lambda spec: spec.symbol)
def test_a_quad_reads_squares_by_rows(spec: EntrySpec, artifact: MakeArtifact) -> None:
    """Of an op that reads or writes squares, sums go over quads; other ops exchange nothing."""
    ptx = artifact(spec).payload.decode()
    rows = 2 * spec.constants["BM"] // 64 // (1 if spec.constants["APART"] else spec.constants["BM"] // 64)
    assert len(re.findall(r"shfl\.sync\.bfly", ptx)) == (2 * rows if spec.op in RMS else 0)
    assert len(re.findall(r"rsqrt\.approx", ptx)) == (rows if spec.op.startswith("rms_linear") else 0)


def test_a_part_of_the_squares_is_as_wide_as_a_tile_and_no_part_is_empty() -> None:
    for spec in ENTRIES:
        if spec.op == "linear_residual_squares":
            wide = spec.constants["BN"]
            # Of few rows, of many, and of so many that a round has as many tiles as it can.
            sizes = [
                {"M": m, "K": 64, "N": 5 * wide - (64 if wide > 64 else 0), "Z": 5, "L": m} for m in (256, 1024, 3200)
            ]
            fits = next((size for size in sizes if spec.unmet(size) is None), None)
            assert fits is not None, spec.symbol
            assert spec.unmet({**fits, "Z": 4}) is not None
    (spec,) = [spec for spec in ENTRIES if spec.symbol == "linear_residual_squares_wgmma_128_bf16"]
    assert spec.unmet({"M": 1024, "K": 64, "N": 800, "Z": 8, "L": 1024}) is not None  # of 8 parts the last is empty


def test_every_entry_is_checked_by_a_case_on_a_gpu() -> None:
    chosen: set[str] = set()
    for case in CASES:
        fitting = [
            spec for spec in ENTRIES if spec.op == case.op and spec.dtype == "bf16" and not spec.unmet(case.dims)
        ]
        chosen |= {spec.symbol for spec in fitting[:1]}
    assert chosen == {spec.symbol for spec in ENTRIES if spec.dtype == "bf16"}
