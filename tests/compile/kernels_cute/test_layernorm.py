"""layernorm in CuTe: its accesses and sums follow from the layouts."""

from __future__ import annotations

import re

import pytest

from kernels_cute.layernorm import Rows, layernorm
from toolchain.errors import UsageError


@pytest.mark.parametrize(
    ("rows", "reads", "width"),
    [
        (Rows(4, 1024), 3 * 4, "v4.b32"),  # a row of 1024, its weight and bias: 4 vectors of a thread each
        (Rows(4, 1024, whole=False), 5 * 4, "v4.b32"),  # the row three times
        (Rows(2, 256, aligned=False, whole=False), 5 * 8, "b16"),
    ],
)
def test_a_row_that_fits_is_read_once(rows: Rows, reads: int, width: str) -> None:
    ptx = layernorm("bf16", rows).ptx("sm_80")
    assert len(re.findall(rf"ld\.global\.{width}", ptx)) == reads
    assert len(re.findall(r"shfl\.sync\.bfly", ptx)) == 2 * 5  # two sums over a warp
    assert ".local" not in ptx
    assert f".reqntid {32 * rows.rows}" in ptx


def test_f32_moves_four_elements_at_once() -> None:
    ptx = layernorm("f32", Rows(1, 256)).ptx("sm_80")
    assert len(re.findall(r"st\.global\.v4\.b32", ptx)) == 2


def test_rows_that_no_warp_takes_are_refused() -> None:
    with pytest.raises(UsageError, match="40 warps"):
        Rows(40)
    with pytest.raises(UsageError, match="100 columns"):
        Rows(4, 100)
