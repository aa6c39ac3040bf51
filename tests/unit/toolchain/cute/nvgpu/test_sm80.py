"""Instructions since sm_80 as the PTX ISA writes them; tests/compile has ptxas read all."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from toolchain.cute.nvgpu.sm80 import ROWS

from .written import text, written


@pytest.mark.parametrize(
    ("operands", "n", "ptx"),
    [
        ("sl", 16, "cp.async.cg.shared.global [$0], [$1], 16;"),  # only these pass by the L1 cache
        ("sl", 8, "cp.async.ca.shared.global [$0], [$1], 8;"),
        ("slr", 4, "cp.async.ca.shared.global [$0], [$1], 4, $2;"),
    ],
)
def test_copies_in_the_background(operands: str, n: int, ptx: str) -> None:
    assert text("copy.cp_async", operands, n=n) == ptx


def test_a_copy_that_fetches_what_is_around() -> None:
    assert text("copy.cp_async", "sl", atom="L2::128B", n=16) == "cp.async.cg.shared.global.L2::128B [$0], [$1], 16;"
    with pytest.raises(VerifyException, match="no hint L2::64B"):
        text("copy.cp_async", "sl", atom="L2::64B", n=16)


@pytest.mark.parametrize(
    ("name", "ptx"),
    [
        ("xor", "shfl.sync.bfly.b32 $0, $1, 3, 31, 0xffffffff;"),
        ("down", "shfl.sync.down.b32 $0, $1, 3, 31, 0xffffffff;"),
        ("up", "shfl.sync.up.b32 $0, $1, 3, 0, 0xffffffff;"),  # its bound is the lowest lane
    ],
)
def test_shuffles_by_a_number(name: str, ptx: str) -> None:
    assert written(f"shuffle.{name}", "r", "r", n=3) == (ptx, "=r,r")
    assert written(f"shuffle.{name}", "f", "f", n=3) == (ptx, "=f,f")


def test_a_shuffle_from_a_lane() -> None:
    assert written("shuffle.idx", "fr", "f") == ("shfl.sync.idx.b32 $0, $1, $2, 31, 0xffffffff;", "=f,f,r")


def test_the_first_of_a_pair_is_in_the_low_half() -> None:
    """PTX names the high half first."""
    assert text("convert.pair", "ff", "r", "bf16") == "cvt.rn.bf16x2.f32 $0, $2, $1;"


def test_a_pair_is_unpacked_low_half_first() -> None:
    ptx, constraints = written("unpack.pair", "r", "ff", "bf16")
    assert ptx.splitlines() == ["shl.b32 $0, $2, 16;", "and.b32 $1, $2, 0xffff0000;"]
    assert constraints == "=f,=f,r"
    ptx, constraints = written("unpack.pair", "r", "ff", "f16")
    assert ptx.splitlines()[2:4] == ["mov.b32 {low, high}, $2;", "cvt.f32.f16 $0, low;"]
    assert constraints == "=f,=f,r"


def test_registers_that_are_pinned_stay_where_they_are() -> None:
    assert written("registers", "fr", "fr") == ("", "=f,=r,0,1")


def test_barriers_count_threads() -> None:
    assert text("barrier", "r", n=96) == "bar.sync $0, 96;"
    assert text("barrier.arrive", "r", n=96) == "bar.arrive $0, 96;"


def test_only_the_hyperbolic_tangent_keeps_denormals() -> None:
    functions = {name: text(name, "f", "f") for name, row in ROWS.items() if row.operands == "f32 -> f32"}
    assert len(functions) == 7
    assert {name for name, ptx in functions.items() if ".approx.ftz.f32 $0, $1;" not in ptx} == {"tanh"}


def test_a_matrix_product_is_its_atom_s() -> None:
    ptx, constraints = written("mma.sync", "rrrrrrffff", "ffff", "mma.m16n8k16.f32.bf16")
    assert ptx.startswith("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}")
    assert constraints == "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"


def test_what_came_later_says_so() -> None:
    assert {name for name, row in ROWS.items() if not row.runs_on("sm_80")} == {"copy.stmatrix"}
