"""Branches of PTX: where threads come together again, and which registers may be read unwritten."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.toolchain.cute.executor.ptx.written import kernel, results
from toolchain.cute.executor.ptx.control import blocks_of, post_dominators, read_unwritten
from toolchain.cute.executor.ptx.registers import read_and_written
from toolchain.cute.executor.ptx.text import parse
from toolchain.errors import SourceError

LOOP = """\
mov.b32 %r2, 0;
again:
setp.ge.s32 %p1, %r2, %r1;
@%p1 bra done;
add.s32 %r2, %r2, 1;
and.b32 %r3, %r2, 3;
setp.eq.b32 %p2, %r3, 0;
@%p2 bra again;
bra.uni again;
done:
"""


def test_the_blocks_of_a_loop_and_where_they_meet() -> None:
    body = parse(kernel(LOOP), "k.ptx").entries["k"].body
    blocks, labels = blocks_of(body, "k.ptx")
    assert [block.next for block in blocks] == [[1], [4, 2], [1, 3], [1], [6], [6]] and labels == {
        "again": 1,
        "done": 4,
    }
    assert post_dominators(blocks) == [1, 4, 1, 1, 6, 6]


def test_threads_leave_a_loop_each_in_its_turn() -> None:
    assert (results(LOOP) == np.arange(32)).all()


def test_threads_that_part_come_together_before_a_barrier() -> None:
    parted = (
        "setp.lt.s32 %p1, %r1, 7;",
        "@%p1 bra less;",
        "mul.lo.s32 %r2, %r1, 10;",
        "bra.uni both;",
        "less: neg.s32 %r2, %r1;",
        "both: bar.warp.sync 0xffffffff;",
        "shfl.sync.bfly.b32 %r2, %r2, 1, 31, -1;",
    )
    lanes = np.arange(32) ^ 1
    assert (results(*parted) == np.where(lanes < 7, -lanes, 10 * lanes)).all()


def test_threads_that_return_are_not_waited_for() -> None:
    some = ("mov.b32 %r2, 5;", "setp.lt.s32 %p1, %r1, 30;", "@%p1 ret;")
    assert list(results(*some)[-4:]) == [28, 29, 5, 5]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (("add.s32 %r2, %r1, %r3;",), {"%r1", "%r3"}),
        (("mov.b32 %r1, 0;", "mov.b32 %r3, 0;", "add.s32 %r2, %r1, %r3;"), set[str]()),
        (("mov.b32 %r1, 0;", "@%p1 mov.b32 %r3, 0;", "add.s32 %r2, %r1, %r3;"), {"%p1", "%r3"}),  # of some threads only
        (("bra.uni over;", "mov.b32 %r1, 0;", "over: mov.b32 %r2, %r1;"), {"%r1"}),
    ],
)
def test_registers_that_may_be_read_before_they_are_written(lines: tuple[str, ...], wanted: set[str]) -> None:
    blocks, _ = blocks_of(parse(kernel(*lines)).entries["k"].body, "k.ptx")
    assert read_unwritten(blocks, read_and_written) == wanted


def test_a_branch_to_nowhere_is_named() -> None:
    with pytest.raises(SourceError, match=r"k\.ptx:9: a branch to away, which is no label"):
        blocks_of(parse(kernel("bra away;"), "k.ptx").entries["k"].body, "k.ptx")
