"""The GEMM in CuTe for sm_80: its text can be read again, and its PTX has the instructions that its layouts ask for."""

from __future__ import annotations

import re

import pytest

from kernels_cute.products.linear import Tiles, linear
from toolchain.cute.compile import to_ptx
from toolchain.cute.parse import parse
from toolchain.errors import UsageError


@pytest.fixture(scope="module")
def kernel():
    return linear("bf16", Tiles(64, 64, 32, 2))


def test_the_instructions_follow_from_the_layouts(kernel) -> None:
    ptx = kernel.ptx("sm_80")
    # A warp has 32 x 32 of the output: 2 x 4 atoms, twice along K; ldmatrix loads 16 x 16 of each operand, and the
    # first step once more before the loop.
    assert len(re.findall(r"mma\.sync", ptx)) == 2 * 4 * 2
    assert len(re.findall(r"ldmatrix\.sync\S*\.x4\.shared", ptx)) == 2 * 2 + 2
    assert len(re.findall(r"ldmatrix\.sync\S*\.x4\.trans", ptx)) == 2 * 2 + 2
    assert ".local" not in ptx  # every fragment is in registers
    assert ".reqntid 128" in ptx
    assert kernel.shared_bytes == 2 * (64 * 32 + 64 * 32) * 2


def test_many_sums_leave_registers_for_one_part_of_the_weight_ahead() -> None:
    tiles = Tiles(64, 192, 32, 3, (1, 2))
    assert (tiles.parts, tiles.ahead, Tiles(64, 128, 32, 3, (1, 2)).ahead) == (6, 1, 4)
    ptx = linear("bf16", tiles).ptx("sm_80")
    # Two steps of four reads of x and six of the weight; before the loop, the first of x and one of the weight.
    assert len(re.findall(r"ldmatrix\.sync\S*\.x4\.shared", ptx)) == 4 * 2 + 4
    assert len(re.findall(r"ldmatrix\.sync\S*\.x4\.trans", ptx)) == 6 * 2 + 1


def test_the_text_of_the_kernel_compiles_alike(kernel) -> None:
    assert str(parse(str(kernel))) == str(kernel)
    assert to_ptx(str(kernel), "sm_80") == kernel.ptx("sm_80")


def test_a_tile_that_does_not_divide_is_refused() -> None:
    with pytest.raises(UsageError, match="no whole number of atoms"):
        linear("bf16", Tiles(96, 64, 32, 2, (4, 2)))
    with pytest.raises(UsageError, match="no whole number of atoms"):
        linear("bf16", Tiles(64, 192, 32, 2, (1, 3)))  # 64 columns are written at a time
