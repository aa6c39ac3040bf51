"""Instructions since sm_90 as the PTX ISA writes them; tests/compile has ptxas read all."""

from __future__ import annotations

import pytest

from toolchain.cute.nvgpu.sm90 import ROWS

from .written import text, written

BULK, BYTES = "cp.async.bulk.tensor", "mbarrier::complete_tx::bytes"


@pytest.mark.parametrize(
    ("name", "operands", "ptx"),
    [
        ("tma_load", "slsrr", f"{BULK}.2d.shared::cluster.global.tile.{BYTES} [$0], [$1, {{$3, $4}}], [$2];"),
        ("tma_load_im2col", "slsrrrr",
         f"{BULK}.3d.shared::cluster.global.im2col.{BYTES} [$0], [$1, {{$3, $4, $5}}], [$2], {{offset0}};"),
        ("tma_load_multicast", "slsrr",
         f"{BULK}.1d.shared::cluster.global.tile.{BYTES}.multicast::cluster [$0], [$1, {{$4}}], [$2], mask;"),
        ("tma_store", "slrrr", f"{BULK}.3d.global.shared::cta.tile.bulk_group [$1, {{$2, $3, $4}}], [$0];"),
        ("tma_prefetch", "lr", "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [$0, {$1}];"),
    ],
)  # fmt: skip
def test_boxes_by_tma(name: str, operands: str, ptx: str) -> None:
    assert text(f"copy.{name}", operands) == ptx


def test_a_reduction_by_tma_names_what_it_does() -> None:
    assert text("copy.tma_reduce", "slr", atom="max") == (
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.max.tile.bulk_group [$1, {$2}], [$0];"
    )


def test_bytes_by_tma_go_the_way_that_they_say() -> None:
    assert text("copy.bulk_load", "sls", n=32).endswith("complete_tx::bytes [$0], [$1], 32, [$2];")
    assert text("copy.bulk_store", "sl", n=32) == "cp.async.bulk.global.shared::cta.bulk_group [$1], [$0], 32;"
    assert text("copy.bulk_wait_group", n=1) == "cp.async.bulk.wait_group.read 1;"  # the memory may be written again
    assert text("copy.bulk_wait_group_all", n=1) == "cp.async.bulk.wait_group 1;"


@pytest.mark.parametrize(
    ("atom", "operands", "tail"),
    [
        ("wgmma.m64n8k16.f32.bf16.kk", "ffffllr", "$8, $9, p, 1, 1, 0, 0;"),
        ("wgmma.m64n8k16.f32.bf16.km", "ffffllr", "$8, $9, p, 1, 1, 0, 1;"),
        ("wgmma.m64n8k16.f32.f16.mk", "ffffllr", "$8, $9, p, 1, 1, 1, 0;"),
        ("wgmma.m64n8k8.f32.tf32.kk", "ffffllr", "$8, $9, p, 1, 1;"),  # K is side by side, always
        ("wgmma.m64n8k32.s32.s8.kk", "rrrrllr", "$8, $9, p;"),  # and whole numbers have no signs to change
        ("wgmma_rs.m64n8k16.f32.f16.km", "ffffrrrrlr", "{$8, $9, $10, $11}, $12, p, 1, 1, 1;"),
    ],
)
def test_products_of_a_warpgroup(atom: str, operands: str, tail: str) -> None:
    ptx, constraints = written("mma.wgmma", operands, operands[:4], atom)
    assert ptx.splitlines()[3].endswith(f" {{$0, $1, $2, $3}}, {tail}")
    assert ptx.splitlines()[2] == f"setp.ne.b32 p, ${len(operands) + 3}, 0;"  # the last: 0 overwrites the result
    assert constraints.startswith(f"={operands[0]},={operands[0]},={operands[0]},={operands[0]},0,1,2,3,")


def test_a_sparse_product_names_its_metadata() -> None:
    ptx, constraints = written("mma.wgmma_sp", "ffffllrr", "ffff", "wgmma_sp.m64n8k32.f32.bf16.mk")
    assert ptx.splitlines()[3].endswith("{$0, $1, $2, $3}, $8, $9, $10, 0, p, 1, 1, 1, 0;")
    assert "$11, 0;" in ptx and constraints.endswith(",l,l,r,r")


def test_a_wait_goes_on_until_the_phase_has_ended() -> None:
    """Its label is its own, however often the compiler writes it."""
    lines = written("mbarrier.wait", "sr")[0].splitlines()
    assert lines[2:5] == [
        "again_${:uid}:",
        "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;",
        "@!done bra again_${:uid};",
    ]
    for kind in ("try_wait", "test_wait"):
        assert f"mbarrier.{kind}.parity.shared::cta.b64 done, [$1], $2;" in written(f"mbarrier.{kind}", "sr", "r")[0]


def test_an_arrival_releases_what_was_written_to_those_who_wait() -> None:
    scopes = {"mbarrier.arrive": "cta", "mbarrier.arrive_remote": "cluster", "cluster.arrive": "cluster"}
    for name, scope in scopes.items():
        ptx = text(name, "s" if name.startswith("mbarrier") else "", atom="release" if name == "cluster.arrive" else "")
        assert scope in ptx and "release" in ptx
    assert "release.cta.shared::cluster" in text("mbarrier.arrive_remote_read", "s")  # no write is of interest there
    assert text("mbarrier.arrive_expect_tx", "s", n=64).endswith("_, [$0], 64;")
    assert text("cluster.wait") == "barrier.cluster.wait.acquire.aligned;"


def test_only_products_and_registers_are_of_hopper_and_its_like() -> None:
    bound = {name for name, row in ROWS.items() if row.family}
    assert bound == {"mma.wgmma", "mma.wgmma_sp", "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group",
                     "set_registers"}  # fmt: skip
    assert ROWS["set_registers"].runs_on("sm_100a") and not ROWS["mma.wgmma"].runs_on("sm_100a")
