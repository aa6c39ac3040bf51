"""Loads and stores of PTX: vectors, address spaces, widths, and local memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.toolchain.cute.executor.ptx.written import kernel, launch, results
from toolchain.cute.executor import Misaligned, NoSemantics, OutOfBounds, Race, Uninitialised

SHARED = ".shared .align 16 .b8 room[256];"


def test_vectors_go_through_shared_memory() -> None:
    lines = (
        "mov.b32 %r3, room;",
        "shl.b32 %r4, %r1, 3;",
        "add.s32 %r3, %r3, %r4;",
        "st.shared.v2.b32 [%r3], {%r1, 9};",
        "bar.sync 0;",
        "ld.shared::cta.v2.u32 {%r5, %r6}, [%r3];",
        "add.s32 %r2, %r5, %r6;",
    )
    assert (results(*lines, before=SHARED) == np.arange(32) + 9).all()


def test_an_address_is_a_variable_and_bytes() -> None:
    lines = (
        "setp.eq.s32 %p1, %r1, 0;",
        "@%p1 st.shared.b32 [room+8], 77;",
        "bar.sync 0;",
        "ld.shared.b32 %r2, [room+8];",
    )
    assert (results(*lines, before=SHARED) == 77).all()
    assert (results("ld.global.nc.L1::no_allocate.b32 %r2, [%d1+4];") == 1).all()


def test_a_narrow_load_fills_its_register() -> None:
    given = np.full(32, -2, np.int32)
    assert (results("ld.global.s8 %h1, [%d0];", "cvt.s32.s16 %r2, %h1;", of=given) == -2).all()
    assert (results("ld.global.u8 %h1, [%d0];", "cvt.s32.s16 %r2, %h1;", of=given) == 254).all()
    lines = ("mov.b32 %r3, 0x1234;", "st.global.b8 [%d0], %r3;", "ld.global.b32 %r2, [%d0];")
    assert (results(*lines, of=np.zeros(32, np.int32)) == 0x34).all()


def test_local_memory_is_each_threads_own() -> None:
    lines = (
        ".local .align 4 .b8 depot[8];",
        "mov.b64 %d3, depot;",
        "st.local.b32 [%d3+4], %r1;",
        "ld.local.b32 %r2, [%d3+4];",
    )
    assert (results(*lines) == np.arange(32)).all()
    with pytest.raises(Uninitialised):
        results(*lines[:2], "ld.local.b32 %r2, [%d3];")


def test_a_generic_address_is_where_it_points() -> None:
    assert (results("cvta.to.global.u64 %d3, %d0;", "ld.b32 %r2, [%d3];") == np.arange(32)).all()


@pytest.mark.parametrize(
    ("line", "wanted", "said"),
    [
        ("ld.global.b32 %r2, [%d0+128];", OutOfBounds, "ld.global.b32 at kernel.ptx:10, block .*, thread 0"),
        ("ld.global.v2.b32 {%r2, %r3}, [%d0];", Misaligned, "no multiple of 8"),
        ("ld.shared.b32 %r2, [room];", Uninitialised, "nothing has written"),
        ("st.shared.b32 [room], %r1;", Race, "another value at once"),
        (
            "ld.global.acquire.b32 %r2, [%d0];",
            NoSemantics,
            "kernel.ptx:10: .* this form of ld.global.acquire.b32: a .acquire",
        ),
        ("ld.global.v4.b32 {%r2, %r3}, [%d0];", NoSemantics, "2 registers of .b32"),
        ("ld.const.b32 %r2, [%d0];", NoSemantics, "a .const"),
    ],
)
def test_a_mistake_is_named(line: str, wanted: type[Exception], said: str) -> None:
    with pytest.raises(wanted, match=said):
        results(line, "mov.b32 %r2, 0;", before=SHARED)


def test_a_race_between_warps_is_found() -> None:
    lines = (
        "mov.b32 %r3, room;",
        "shl.b32 %r4, %r0, 2;",
        "add.s32 %r3, %r3, %r4;",
        "st.shared.b32 [%r3], %r0;",
        "xor.b32 %r4, %r4, 128;",
        "mov.b32 %r5, room;",
        "add.s32 %r4, %r4, %r5;",
        "ld.shared.b32 %r2, [%r4];",
    )
    with pytest.raises(Race, match=r"st\.shared\.b32 at kernel\.ptx:12"):
        launch(kernel(*lines, before=SHARED, threads=64), np.zeros(64, np.int32))
    launch(kernel(*lines[:4], "bar.sync 0;", *lines[4:], before=SHARED, threads=64), np.zeros(64, np.int32))
