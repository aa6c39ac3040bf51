"""Launches of several ranks: what a rank's next launch knows, and of whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import Race
from toolchain.cute.executor.launches.ranks import launch_ranks, run_ranks
from toolchain.cute.executor.state.memory import GlobalMemory
from toolchain.errors import UsageError

from ..instructions.test_flags import FLAGS, FLOATS, at

PARAMETERS = (FLAGS, FLOATS, FLOATS, cute.Number32())


@cute.kernel(*PARAMETERS, threads=64)
def storing(flags: Any, rows: Any, out: Any, rank: Any) -> None:
    """Writes a row of the other rank, and one of its own."""
    thread = arch.thread_idx()[0]
    rows[1 - rank, thread] = cute.scalar(thread + rank * 100).to("f32")
    out[0, thread] = cute.scalar(thread).to("f32")
    arch.sync_threads()
    with cute.when(cute.same(thread, 0)):
        arch.instruction("flag.add", at(flags, 1 - rank), 1)


def reading(*, waits: bool) -> cute.Kernel:
    @cute.kernel(*PARAMETERS, threads=64)
    def kernel(flags: Any, rows: Any, out: Any, rank: Any) -> None:
        thread = arch.thread_idx()[0]
        out[0, thread] = cute.Scalar(out[0, thread].value) + 1.0  # of the launch before on this rank
        if waits:
            with cute.when(cute.same(thread, 0)):
                arch.instruction("flag.wait", at(flags, rank), 1, 0, results=[i32])
            arch.sync_threads()
        out[1, thread] = rows[rank, thread]

    return kernel


def _run(*kernels: cute.Kernel) -> list[Any]:
    flags, rows = np.zeros(2, np.int32), np.zeros((2, 64), np.float32)
    out = [np.zeros((2, 64), np.float32) for _ in range(2)]
    args = [[flags, rows, out[rank], rank] for rank in range(2)]
    run_ranks([(kernel, args) for kernel in kernels], (1, 1, 1), [flags, rows])
    return out


def test_a_launch_knows_what_its_rank_did_before_and_waits_for_the_others() -> None:
    for rank, out in enumerate(_run(storing, reading(waits=True))):
        assert (out[0] == np.arange(64) + 1).all()
        assert (out[1] == np.arange(64) + (1 - rank) * 100).all()


def test_what_another_rank_stored_in_an_earlier_launch_is_a_race_without_a_wait() -> None:
    with pytest.raises(Race, match=r"reads rows\[0, 0\], which an earlier launch \(warp 0 .* of rank 1\) wrote"):
        _run(storing, reading(waits=False))


def test_what_is_written_before_the_others_have_read_it_is_a_race() -> None:
    with pytest.raises(Race, match=r"writes rows\[1, 0\], which an earlier launch \(warp 0 .* of rank 1\) read"):
        _run(storing, reading(waits=True), storing)


def begun_early(what: str) -> cute.Kernel:
    """It does something before it waits for the launch before."""

    @cute.kernel(*PARAMETERS, threads=64)
    def kernel(flags: Any, rows: Any, out: Any, rank: Any) -> None:
        thread, read = arch.thread_idx()[0], None
        if what == "read of others":
            read = rows[rank, thread]
        if what == "read":
            read = out[0, thread]
        if what == "write":
            out[1, thread] = cute.scalar(1).to("f32")
        if what == "tell":
            with cute.when(cute.same(thread, 0)):
                arch.instruction("flag.add", at(flags, 1 - rank), 1)
        arch.grid_wait()
        if read is not None:
            out[1, thread] = read

    return kernel


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("read of others", r"reads rows\[0, 0\]"),
        ("read", r"reads out\[0, 0\]"),
        ("write", r"writes out\[1, 0\]"),
        ("tell", r"adds to flags\[1\]"),
    ],
)
def test_what_an_earlier_launch_may_still_use_is_left_alone_before_the_wait(what: str, said: str) -> None:
    _run(storing, begun_early("nothing"))
    with pytest.raises(Race, match=f"{said} before grid_wait: the launch before may still use it"):
        _run(storing, begun_early(what))


def test_each_step_is_a_launch_of_every_rank() -> None:
    with pytest.raises(UsageError, match="every rank"):
        launch_ranks([], GlobalMemory())
