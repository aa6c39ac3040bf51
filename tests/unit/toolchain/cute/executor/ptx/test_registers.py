"""Registers of PTX: words that instructions take as they say, written where threads are active."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.toolchain.cute.executor.ptx.written import kernel, launch, results
from toolchain.cute.executor import DivergentBarrier, Undefined, Uninitialised
from toolchain.cute.executor.ptx.registers import constant, read_and_written
from toolchain.cute.executor.ptx.text import Operand, parse

LANES = np.arange(32)


def test_a_number_is_taken_as_its_type_says() -> None:
    assert constant(Operand("number", value=-1), "u32").dtype == np.int32
    assert constant(Operand("number", value=0xFFFFFFFF), "b32")[0] == -1
    assert constant(Operand("number", value=0x3F800000, is_float=True), "f32")[0] == 1.0
    assert constant(Operand("number", value=0x3F800000, is_float=True), "b32")[0] == 0x3F800000
    assert constant(Operand("number", value=3), "f32")[0] == 3.0
    assert list(constant(Operand("number", value=-1), "pred")) == [True]


def test_what_an_instruction_reads_and_writes() -> None:
    lines = (
        "@%p1 add.s32 %r1, %r2, 3;",
        "st.global.b32 [%d0], %r4;",
        "ld.shared.v2.b32 {%r5, %r6}, [%r7];",
        "bar.sync %r8, 64;",
    )
    body = parse(kernel(*lines)).entries["k"].body[-5:-1]
    assert [read_and_written(each) for each in body] == [
        (["%p1", "%r2"], ["%r1"]),
        (["%d0", "%r4"], []),
        (["%r7"], ["%r5", "%r6"]),
        (["%r8"], []),
    ]


def test_a_write_is_for_the_active_threads_alone() -> None:
    some = ("mov.b32 %r2, 7;", "setp.gt.s32 %p1, %r1, 15;", "@%p1 add.s32 %r2, %r1, 1;", "@!%p1 mov.b32 %r3, %r2;")
    assert (results(*some) == np.where(LANES > 15, LANES + 1, 7)).all()


def test_parts_of_a_word() -> None:
    parts = ("mov.b32 {%h1, %h2}, %r1;", "mov.b32 %r3, {%h2, %h1};", "cvt.u32.u16 %r4, %h1;", "or.b32 %r2, %r3, %r4;")
    given = np.arange(32, dtype=np.int32) + (3 << 16)
    assert (results(*parts, of=given) == (LANES << 16 | 3 | LANES)).all()
    assert (results("mov.b64 %d3, {%r1, 1};", "mov.b64 {_, %r2}, %d3;") == 1).all()


def test_a_predicate_is_a_number_of_one_bit() -> None:
    lines = (
        "setp.lt.s32 %p1, %r1, 9;",
        "setp.gt.s32 %p2, %r1, 3;",
        "and.pred %p3, %p1, %p2;",
        "not.pred %p4, %p3;",
        "selp.b32 %r2, 1, 0, %p4;",
    )
    assert (results(*lines) == ~((LANES < 9) & (LANES > 3))).all()


def test_a_register_that_nothing_wrote_is_named() -> None:
    with pytest.raises(Uninitialised, match=r"k: add\.s32 at kernel\.ptx:10"):
        results("add.s32 %r2, %r1, %r3;")
    with pytest.raises(Uninitialised, match="thread 4: a register is used that nothing has written"):
        results("setp.lt.s32 %p1, %r1, 4;", "@%p1 mov.b32 %r2, 1;")


def test_a_division_by_zero_is_named() -> None:
    with pytest.raises(Undefined, match=r"div\.u32 at kernel\.ptx:10, block .*, thread 0: a division by zero"):
        results("div.u32 %r2, 8, %r1;")


def test_an_instruction_of_a_whole_warp_with_a_predicate_is_named() -> None:
    with pytest.raises(DivergentBarrier):
        results("setp.lt.s32 %p1, %r1, 4;", "@%p1 shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;", "mov.b32 %r2, 1;")


def test_elect_gives_a_predicate_and_a_lane() -> None:
    lines = ("elect.sync %r3|%p1, 0xffffffff;", "selp.b32 %r2, 5, %r3, %p1;")
    assert list(results(*lines)) == [5] + [0] * 31
    launch(kernel("elect.sync _|%p1, -1;"), np.zeros(32, np.int32))
