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
        arch.cp_async_wait_group(0)

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


def refilled(*, filled: bool = True, read: bool = True, step: int = 1, last: bool = True) -> cute.Kernel:
    """Each lane copies to its slot, and again once the lane `step` before it has read the slot."""

    @cute.kernel(VECTOR, VECTOR, threads=32)
    def made(source: Any, target: Any) -> None:
        thread = arch.thread_idx()[0]
        shared = cute.shared_tensor("f32", Layout(32))
        for _ in range(2):
            arch.instruction("copy.cp_async", at(shared, thread), at(source, thread), n=4)
            arch.cp_async_commit_group()
            arch.cp_async_wait_group(0)
            if filled:
                arch.instruction("warp_sync")
            target[thread] = shared[(thread + step) % 32]
            if read:
                arch.instruction("warp_sync")
        arch.instruction("copy.cp_async", at(shared, thread), at(source, thread), n=4)
        arch.cp_async_commit_group()
        if last:
            arch.cp_async_wait_group(0)

    return made


def test_a_slot_that_lanes_of_a_warp_share() -> None:
    source, target = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    run(refilled(), (source, target))
    assert (target == np.roll(source, -1)).all()
    run(refilled(filled=False, read=False, step=0), (source, target))  # each lane has its own
    read = r"thread 0: writes byte 0 of .* \(warp 0\) read in thread 31 of the same warp: the warp has not"
    with pytest.raises(Race, match=read) as found:
        run(refilled(read=False), (source, target))
    assert found.value.site.op == "cute_nvgpu.arch.copy.cp_async" and "a warp_sync between the two" in str(found.value)
    written = r"thread 0: reads byte 4 of .* \(cp.async of warp 0\) wrote in thread 1 of the same warp"
    with pytest.raises(Race, match=written):
        run(refilled(filled=False), (source, target))


def test_copies_that_are_under_way_when_the_block_ends() -> None:
    source, target = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    with pytest.raises(MissingWait, match=r"copy.cp_async at .* still writes shared memory when the block ends"):
        run(refilled(last=False), (source, target))


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
