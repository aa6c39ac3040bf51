"""Instructions of sm_100a as the PTX ISA writes them; tests/compile has ptxas read all."""

from __future__ import annotations

import pytest

from toolchain.cute.nvgpu.sm100 import COLUMNS, MOVES, ROWS

from .written import text, written


@pytest.mark.parametrize(
    ("name", "operands", "atom", "ptx"),
    [
        ("mma", "rllrr", "f16", "tcgen05.mma.cta_group::1.kind::f16 [$0], $1, $2, $3, p;"),
        ("mma", "rrlrr", "tf32.pair", "tcgen05.mma.cta_group::2.kind::tf32 [$0], [$1], $2, $3, p;"),  # A in TMEM
        ("mma_sp", "rllrrr", "f16", "tcgen05.mma.sp.cta_group::1.kind::f16 [$0], $1, $2, [$3], $4, p;"),
    ],
)
def test_products(name: str, operands: str, atom: str, ptx: str) -> None:
    assert text(f"tcgen05.{name}", operands, atom=atom) == ptx
    last = len(operands) - 1  # 0 overwrites the result
    assert f"setp.ne.b32 p, ${last}, 0;" in written(f"tcgen05.{name}", operands, atom=atom)[0]


@pytest.mark.parametrize(
    ("atom", "kind", "scales"),
    [("mxf8f6f4", "mxf8f6f4", "1X"), ("mxf4", "mxf4", "2X"), ("mxf4nvf4.2X", "mxf4nvf4", "2X"),
     ("mxf4nvf4.4X.pair", "mxf4nvf4", "4X")],
)  # fmt: skip
def test_how_many_scales_a_step_has(atom: str, kind: str, scales: str) -> None:
    group = 2 if atom.endswith("pair") else 1
    assert text("tcgen05.mma_scaled", "rllrrrr", atom=atom) == (
        f"tcgen05.mma.cta_group::{group}.kind::{kind}.block_scale.scale_vec::{scales} [$0], $1, $2, $3, [$4], [$5], p;"
    )


@pytest.mark.parametrize(("shape", "registers"), [("16x64b", 1), ("16x128b", 2), ("16x256b", 4), ("32x32b", 1)])
def test_a_move_has_the_registers_of_its_shape_times_its_repetitions(shape: str, registers: int) -> None:
    count = 2 * registers
    held = ", ".join(f"${i}" for i in range(count))
    loaded = written("tmem.load", "r", "f" * count, f"{shape}.x2")
    assert loaded == (f"tcgen05.ld.sync.aligned.{shape}.x2.b32 {{{held}}}, [${count}];", "=f," * count + "r")
    held = ", ".join(f"${i + 1}" for i in range(count))
    stored = written("tmem.store", "r" + "r" * count, "", f"{shape}.x2")
    assert stored == (f"tcgen05.st.sync.aligned.{shape}.x2.b32 [$0], {{{held}}};", "r" + ",r" * count)


def test_no_move_has_more_registers_than_a_thread_may_give_it() -> None:
    for shape, most in (("16x64b", 128), ("16x128b", 64), ("16x256b", 32), ("32x32b", 128)):
        assert max(int(move.partition(".x")[2]) for move in MOVES if move.startswith(shape)) == most


def test_tensor_memory_is_taken_by_one_block_or_by_a_pair() -> None:
    for atom, group in (("single", 1), ("pair", 2)):
        assert text("tmem.alloc", "s", atom=atom, n=COLUMNS[1]) == (
            f"tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [$0], 64;"
        )
        assert text("tmem.dealloc", "r", atom=atom, n=512).endswith(f"cta_group::{group}.sync.aligned.b32 $0, 512;")
        assert f"cta_group::{group}." in text("tmem.relinquish", atom=atom)
        assert f"cta_group::{group}." in text("tcgen05.commit", "s", atom=atom)
        assert text("tcgen05.commit_multicast", "sr", atom=atom).endswith(".multicast::cluster.b64 [$0], mask;")


def test_fences_stand_on_the_side_that_they_say() -> None:
    assert text("tcgen05.fence_before") == "tcgen05.fence::before_thread_sync;"
    assert text("tcgen05.fence_after") == "tcgen05.fence::after_thread_sync;"
    assert (text("tmem.wait_load"), text("tmem.wait_store")) == (
        "tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::st.sync.aligned;",
    )  # fmt: skip


def test_only_targets_that_say_so_have_them() -> None:
    for row in ROWS.values():
        assert row.runs_on("sm_100a") and not row.runs_on("sm_100") and not row.runs_on("sm_120a")
