"""Turns of warps: who goes on, what is said when nobody can, and what a read of too early is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.executor import Deadlock, Race, Uninitialised, run
from toolchain.cute.executor.launches import schedule
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

VECTOR = cute.Array("f32", rank=1)


def chain(count: int) -> cute.Kernel:
    """Each warp waits for the one behind it, the last for nobody: the first turn of all but it ends at once."""

    @cute.kernel(VECTOR, threads=32 * count)
    def made(out: Any) -> None:
        thread = arch.thread_idx()[0]
        ready, shared = Barriers(count, 1), cute.shared_tensor("f32", Layout(count + 1))
        with cute.when(cute.same(thread, 0)):
            ready.init()
        arch.sync_threads()
        for warp in range(count):
            with cute.when(cute.same(thread, 32 * warp)):
                if warp < count - 1:
                    ready.wait(warp + 1)
                    shared[warp] = shared[warp + 1] + 1.0
                else:
                    shared[warp] = 1.0
                ready.arrive(warp)
        arch.sync_threads()
        with cute.when(cute.same(thread, 0)):
            out[0] = shared[0]

    return made


def test_every_warp_that_can_go_on_does() -> None:
    out = np.zeros(1, np.float32)
    run(chain(5), (out,))
    assert out[0] == 5


@cute.kernel(VECTOR, threads=128)
def circle(_out: Any) -> None:
    thread = arch.thread_idx()[0]
    ready = Barriers(2, 32)
    with cute.when(cute.same(thread, 0)):
        ready.init()
    arch.sync_threads()
    with cute.when(cute.less(thread, 96)):
        ready.wait(0)
    with cute.when(cute.less(95, thread)):
        ready.wait(1)


def test_warps_that_wait_alike_are_one_line() -> None:
    with pytest.raises(Deadlock) as found:
        run(circle, (np.zeros(1, np.float32),))
    lines = str(found.value).split("\n")[1:]
    assert [line.split(" at ")[0] for line in lines] == ["  warps 0-2", "  warp 3"]
    assert all("32 of 32 arrivals are missing" in line for line in lines)


def early(*, written: bool) -> cute.Kernel:
    """Warp 0 reads what warp 1 writes, or nobody."""

    @cute.kernel(VECTOR, threads=64)
    def made(out: Any) -> None:
        thread = arch.thread_idx()[0]
        shared = cute.shared_tensor("f32", Layout(32))
        with cute.when(cute.less(thread, 32)):
            out[thread] = shared[thread]
        if written:
            with cute.when(cute.less(31, thread)):
                shared[thread - 32] = 1.0

    return made


@pytest.mark.parametrize(("written", "kind"), [(True, Race), (False, Uninitialised)])
def test_a_read_of_what_another_warp_writes_later_is_a_race(written: bool, kind: type[Exception]) -> None:
    with pytest.raises(kind) as found:
        run(early(written=written), (np.zeros(32, np.float32),))
    assert type(found.value) is kind


@cute.kernel(VECTOR, threads=32)
def counting(out: Any) -> None:
    for i in cute.range_(cute.number(cute.ssa(out.shape))):
        out[i] = 1.0


def test_a_kernel_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    run(counting, (np.zeros(50, np.float32),))
    monkeypatch.setattr(schedule, "LIMIT", 100)
    with pytest.raises(UsageError, match=r"counting: no end after \d+ steps of one block"):
        run(counting, (np.zeros(50, np.float32),))
