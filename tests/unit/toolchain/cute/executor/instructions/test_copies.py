"""cp.async: groups, and copies that arrive at an mbarrier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.executor import MissingWait, OutOfBounds, Race, run
from toolchain.cute.layout import Layout

VECTOR = cute.Array("f32", rank=1)


def at(tensor: Any, place: Any) -> Any:
    """The address of an element."""
    return cute.address(cute.local_tile(tensor, (1,), (place,)))


def two_groups(left: int) -> cute.Kernel:
    """Two groups of copies; at most `left` are under way when the first is read."""

    @cute.kernel(VECTOR, VECTOR, threads=32)
    def made(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        shared = cute.shared_tensor("f32", Layout(64))
        for half in range(2):
            arch.instruction("copy.cp_async", at(shared, thread + 32 * half), at(source, thread + 32 * half), n=4)
            arch.cp_async_commit_group()
        arch.cp_async_wait_group(left)
        target[thread] = shared[thread]

    return made


@pytest.mark.parametrize(("left", "right"), [(0, True), (1, True), (2, False)])
def test_a_wait_for_groups(left: int, right: bool) -> None:
    source, target = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    if right:
        run(two_groups(left), (source, target))
        assert (target == source[:32]).all()
    else:
        with pytest.raises(MissingWait, match=r"copy.cp_async at \S+ \(cp.async of warp 0\) still writes"):
            run(two_groups(left), (source, target))


def by_mbarrier(*, waits: bool = True) -> cute.Kernel:
    """Warp 0 copies, its copies arrive, and warp 1 reads."""

    @cute.kernel(VECTOR, VECTOR, threads=64)
    def made(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        shared, full = cute.shared_tensor("f32", Layout(32)), Barriers(1, 32)
        with cute.when(cute.same(thread, 0)):
            full.init()
        arch.sync_threads()
        with cute.when(cute.less(thread, 32)):
            arch.instruction("copy.cp_async", at(shared, thread), at(source, thread), n=4)
            arch.instruction("copy.cp_async_mbarrier_arrive", full.at(0))
        with cute.when(cute.less(31, thread)):
            if waits:
                full.wait(0)
            target[thread - 32] = shared[63 - thread]

    return made


def test_copies_that_arrive_at_an_mbarrier() -> None:
    source, target = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    run(by_mbarrier(), (source, target))
    assert (target == source[::-1]).all()
    with pytest.raises((MissingWait, Race)):
        run(by_mbarrier(waits=False), (source, target))


@pytest.mark.parametrize("bytes_", [0, 4, 8, 16])
def test_the_bytes_that_are_not_read_become_zero(bytes_: int) -> None:
    @cute.kernel(VECTOR, VECTOR, threads=1)
    def partial(source: Any, target: Any) -> None:
        shared = cute.shared_tensor("f32", Layout(4))
        arch.instruction("copy.cp_async", cute.address(shared), cute.address(source), bytes_, n=16)
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)
        for i in range(4):
            target[i] = shared[i]

    source, target = np.ones(4, np.float32), np.full(4, 9, np.float32)
    run(partial, (source[: bytes_ // 4].copy() if bytes_ else source, target))
    assert target.tolist() == [1.0] * (bytes_ // 4) + [0.0] * (4 - bytes_ // 4)


@pytest.mark.parametrize("bytes_", [-4, 20])
def test_more_bytes_than_the_copy_moves(bytes_: int) -> None:
    @cute.kernel(VECTOR, threads=1)
    def copying(source: Any) -> None:
        shared = cute.shared_tensor("f32", Layout(4))
        arch.instruction("copy.cp_async", cute.address(shared), cute.address(source), bytes_, n=16)

    with pytest.raises(OutOfBounds, match=f"thread 0: reads {bytes_} bytes for a copy of 16"):
        run(copying, (np.ones(4, np.float32),))
