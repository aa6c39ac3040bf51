"""A kernel in PTX on the executor as a whole: what it computes, and what is said of what it does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.toolchain.cute.executor.ptx.written import HEAD, kernel, launch, results
from toolchain.cute import dsl as cute
from toolchain.cute.executor import NoSemantics, TensorMap, run
from toolchain.cute.executor.ptx import parse, program_of
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

ARRAY = cute.Array("f32", rank=1)


@cute.kernel(ARRAY, ARRAY, cute.Float32(), threads=64)
def scale(source: Any, target: Any, factor: Any) -> None:
    tile = cute.shared_tensor("f32", Layout(64, 1))
    index = cute.arch.thread_idx()[0]
    tile[index] = source[index]
    cute.arch.sync_threads()
    target[index] = tile[63 - index] * factor


def test_a_kernel_in_python_runs_as_its_ptx() -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    report = run(scale, (x, y, 2.0), ptx=scale.ptx("sm_80"))
    assert (y == 2 * x[::-1]).all()
    assert report.kernel == "scale" and {row.op for row in report.accesses} == {"st.shared.b32", "ld.shared.b32"}


def test_text_alone_runs_with_an_argument_for_each_parameter() -> None:
    text = kernel(
        "ld.param.f32 %r1, [k_1];",
        "ld.param.u32 %r2, [k_2];",
        "cvt.rn.f32.s32 %r3, %r2;",
        "add.rn.f32 %r4, %r1, %r3;",
        "st.global.f32 [%d0], %r4;",
        parameters=".param .u64 k_0, .param .f32 k_1, .param .u32 k_2",
    )
    out = np.zeros(32, np.float32)
    assert launch(text, out, 0.5, 3).blocks == 1
    assert (out == 3.5).all()
    with pytest.raises(UsageError, match="3 parameters, 1 arguments"):
        launch(text, out)


def test_special_registers() -> None:
    lines = (
        "mov.u32 %r3, %ctaid.x;",
        "mov.u32 %r4, %nctaid.y;",
        "mov.u32 %r5, %laneid;",
        "mov.u32 %r6, %cluster_nctarank;",
        "add.s32 %r2, %r3, %r4;",
        "add.s32 %r2, %r2, %r5;",
        "add.s32 %r2, %r2, %r6;",
    )
    assert (results(*lines) == np.arange(32) + 2).all()


def test_a_tensor_map_goes_through_registers() -> None:
    given = np.arange(256, dtype=np.float32).reshape(8, 32)
    lines = (
        "mov.b64 %d3, k_1;",
        "cvta.param.u64 %d4, %d3;",
        "mov.b32 %r3, room;",
        "mov.b32 %r4, bar;",
        "setp.eq.s32 %p1, %r0, 0;",
        "@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;",
        "fence.mbarrier_init.release.cluster;",
        "bar.sync 0;",
        "@!%p1 bra there;",
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r4], 1024;",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%d4, {0, 0}], [%r4];",
        "there: again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;",
        "@!%p2 bra again;",
        "shl.b32 %r5, %r0, 2;",
        "add.s32 %r5, %r5, %r3;",
        "ld.shared.b32 %r6, [%r5+128];",
        "st.global.b32 [%d0], %r6;",
    )
    text = kernel(
        *lines,
        before=".shared .align 128 .b8 room[1024]; .shared .align 8 .b8 bar[8];",
        parameters=".param .u64 .ptr k_0, .param .align 64 .b8 k_1[128]",
    )
    out = np.zeros(32, np.float32)
    launch(text, out, TensorMap(given, (8, 32)))
    assert (out == given[1]).all()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lop3.b32 %r2, %r1, %r1, %r1, 0x80;", "the executor does not know the instruction lop3.b32"),
        ("atom.global.add.u32 %r2, [%d0], 1;", "the executor does not know the instruction atom.global.add.u32"),
        ("mov.u32 %r2, %clock;", "does not know this form of mov.u32: a register %clock"),
        ("add.s32 %r2, %r1;", "the executor does not know the instruction add.s32"),
        ("add.s32 %r2, %r1, away;", "does not know this form of add.s32: an operand away"),
        ("mov.b32 %r2, %away;", "does not know this form of mov.b32: a register %away"),
        ("ld.param.b32 %r2, [k_0+4];", "this form of ld.param.b32: a part of a parameter"),
        ("st.global.b32 [k_0], %r1;", "this form of st.global.b32: an address k_0"),
        ("cvta.to.const.u64 %d3, %d0;", "this form of cvta.to.const.u64: an address space"),
        ("@%p1 elect.sync _|%p1, -1;", "this form of elect.sync: with a predicate of its own"),
    ],
)
def test_what_it_does_not_know_is_refused_by_name_and_line(line: str, said: str) -> None:
    with pytest.raises(NoSemantics) as found:
        program_of(parse(kernel("mov.b32 %r1, 0;", line), "wrong.ptx"))
    assert str(found.value).startswith("wrong.ptx:10: ") and said in str(found.value)


def test_one_of_several_kernels_is_chosen() -> None:
    text = kernel() + kernel().removeprefix(HEAD).replace(" k(", " other(").replace("k_0", "o_0")
    assert program_of(parse(text), "other").name == "other"
    with pytest.raises(UsageError, match="no one kernel '': the text has k, other"):
        program_of(parse(text))


def test_a_global_variable_is_refused() -> None:
    with pytest.raises(NoSemantics, match=r"wrong\.ptx: there: the executor has no \.global variables"):
        program_of(parse(kernel(before=".global .align 4 .b32 there;"), "wrong.ptx"))
