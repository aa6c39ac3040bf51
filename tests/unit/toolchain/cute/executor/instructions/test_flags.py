"""Flags between ranks: what they order, and what is found without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import Deadlock, Race
from toolchain.cute.executor.launches.ranks import run_ranks

FLAGS, FLOATS = cute.Array("i32", rank=1, multiple=1, align=4), cute.Array("f32", rank=2)


def at(flags: Any, number: Any) -> Any:
    return cute.address(cute.local_tile(flags, (1,), (number,)))


def neighbours(*, tells: int = 1, early: bool = False, waits: bool = True, wanted: int = 1) -> cute.Kernel:
    """Each rank writes a row of numbers for the other one, tells it, and reads its own row."""

    @cute.kernel(FLAGS, FLOATS, FLOATS, cute.Number32(), threads=32)
    def kernel(flags: Any, rows: Any, out: Any, rank: Any) -> None:
        lane = arch.thread_idx()[0]

        def tell() -> None:
            arch.instruction("warp_sync")
            with cute.when(cute.same(lane, 0)):
                arch.instruction("flag.add", at(flags, 1 - rank), tells)

        if early:
            tell()
        rows[1 - rank, lane] = cute.scalar(lane + rank * 100).to("f32")
        if not early:
            tell()
        if waits:
            with cute.when(cute.same(lane, 0)):
                arch.instruction("flag.wait", at(flags, rank), wanted, 0, results=[i32])
            arch.instruction("warp_sync")
        out[rank, lane] = rows[rank, lane]

    return kernel


def _run(kernel: cute.Kernel, start: int = 0) -> Any:
    flags, rows = np.full(2, start, np.int32), np.zeros((2, 32), np.float32)
    out = [np.zeros((2, 32), np.float32) for _ in range(2)]
    run_ranks([(kernel, [[flags, rows, out[rank], rank] for rank in range(2)])], (1, 1, 1), [flags, rows])
    return flags, out


def test_who_has_waited_for_a_count_reads_what_was_written_before_it() -> None:
    flags, out = _run(neighbours())
    assert flags.tolist() == [1, 1]
    for rank in range(2):
        assert (out[rank][rank] == np.arange(32) + (1 - rank) * 100).all()


def test_a_count_that_does_not_come_is_named() -> None:
    with pytest.raises(Deadlock, match=r"the count 2 of flags\[0\], which is 1"):
        _run(neighbours(wanted=2))


def test_counts_wrap_around() -> None:
    flags, _ = _run(neighbours(tells=2, wanted=-(2**31)), start=2**31 - 1)
    assert (flags == -(2**31) + 1).all()


@pytest.mark.parametrize("how", [{"early": True}, {"waits": False}])
def test_what_no_flag_orders_is_a_race(how: dict[str, Any]) -> None:
    with pytest.raises(Race, match="no barrier orders the two"):
        _run(neighbours(**how))


def test_a_wait_that_an_earlier_count_ends_orders_nothing_that_came_later() -> None:
    """The row is written before the second count, and the wait is for the first."""

    @cute.kernel(FLAGS, FLOATS, FLOATS, cute.Number32(), threads=32)
    def kernel(flags: Any, rows: Any, out: Any, rank: Any) -> None:
        lane = arch.thread_idx()[0]
        with cute.when(cute.same(lane, 0)):
            arch.instruction("flag.add", at(flags, 1 - rank), 1)
        rows[1 - rank, lane] = cute.scalar(1.0)
        arch.instruction("warp_sync")
        with cute.when(cute.same(lane, 0)):
            arch.instruction("flag.add", at(flags, 1 - rank), 1)
            arch.instruction("flag.wait", at(flags, rank), 1, 0, results=[i32])
        arch.instruction("warp_sync")
        out[rank, lane] = rows[rank, lane]

    with pytest.raises(Race):
        _run(kernel)
    assert _run(neighbours())


def test_flags_are_not_read_as_something_else() -> None:
    @cute.kernel(FLAGS, FLOATS, FLOATS, cute.Number32(), threads=32)
    def kernel(flags: Any, rows: Any, out: Any, rank: Any) -> None:
        del rows
        lane = arch.thread_idx()[0]
        with cute.when(cute.same(lane, 0)):
            arch.instruction("flag.add", at(flags, 0), 1)
        out[rank, lane] = cute.Scalar(flags[0].value).to("f32")

    with pytest.raises(Race, match="which others access as a word"):
        _run(kernel)
