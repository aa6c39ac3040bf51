"""Barriers: who must reach them, what they order, and what a kernel says that cannot go on."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.executor import Deadlock, DivergentBarrier, Finding, MissingFence, OutOfBounds, Race, TensorMap, run
from toolchain.cute.layout import Layout

VECTOR = cute.Array("f32", rank=1)
BOX = (8, 32)  # of f32
Target = np.ndarray[Any, Any]


def target(count: int = 128) -> Target:
    return np.zeros(count, np.float32)


@cute.kernel(VECTOR, threads=64)
def half_a_warp(out: Any) -> None:
    with cute.when(cute.less(arch.thread_idx()[0], 16)):
        out[arch.thread_idx()[0]] = 1.0
        arch.sync_threads()


def test_a_barrier_in_a_branch_of_half_a_warp() -> None:
    with pytest.raises(DivergentBarrier) as found:
        run(half_a_warp, (target(),))
    assert found.value.site.thread == 16 and found.value.site.op == "nvvm.barrier0"


@pytest.mark.parametrize("name", ["barrier", "barrier.arrive"])
def test_a_named_barrier_in_a_branch_of_half_a_warp(name: str) -> None:
    @cute.kernel(VECTOR, threads=64)
    def made(out: Any) -> None:
        with cute.when(cute.less(arch.thread_idx()[0], 16)):
            out[arch.thread_idx()[0]] = 1.0
            arch.instruction(name, 1, n=32)

    with pytest.raises(DivergentBarrier, match="all threads of a warp do this together"):
        run(made, (target(),))


@cute.kernel(VECTOR, threads=64)
def one_warp(out: Any) -> None:
    with cute.when(cute.less(arch.thread_idx()[0], 32)):
        arch.sync_threads()
        out[arch.thread_idx()[0]] = 1.0


def test_a_barrier_that_a_warp_does_not_reach() -> None:
    with pytest.raises(DivergentBarrier, match=r"barrier 0: 32 of 64 threads are there\n  1 other warps have ended"):
        run(one_warp, (target(),))


def pairs(*, count: int, number: int = 1) -> cute.Kernel:
    """Warps 0 and 1 exchange, and so do 2 and 3, with a barrier for each pair."""

    @cute.kernel(VECTOR, threads=128)
    def made(out: Any) -> None:
        thread = arch.thread_idx()[0]
        shared = cute.shared_tensor("f32", Layout(128))
        shared[thread] = 1.0
        pair = thread // 64
        with cute.when(cute.same(pair, 0)):
            arch.instruction("barrier", 1, n=count)
        with cute.when(cute.same(pair, 1)):
            arch.instruction("barrier", number, n=count)
        out[thread] = shared[pair * 64 + (63 - thread % 64)]

    return made


def test_named_barriers() -> None:
    out = target()
    run(pairs(count=64, number=2), (out,))
    assert (out == 1).all()


def test_a_named_barrier_for_too_few_threads_orders_too_little() -> None:
    with pytest.raises(Race):
        run(pairs(count=32, number=2), (target(),))


def test_a_named_barrier_that_not_enough_threads_reach() -> None:
    with pytest.raises(
        DivergentBarrier, match=r"warps 0-1 at \S+ at \S+ waits for barrier 1: 64 of 96 threads are there"
    ):
        run(pairs(count=96, number=2), (target(),))


def handover(*, count: int = 1, sync: bool = True, waits: bool = True) -> cute.Kernel:
    """Warp 0 writes, arrives at an mbarrier, and warp 1 reads."""

    @cute.kernel(VECTOR, threads=64)
    def made(out: Any) -> None:
        thread = arch.thread_idx()[0]
        full = Barriers(1, count)
        shared = cute.shared_tensor("f32", Layout(32))
        with cute.when(cute.same(thread, 0)):
            full.init()
        if sync:
            arch.sync_threads()
        with cute.when(cute.less(thread, 32)):
            shared[thread] = 2.0
            with cute.when(cute.same(thread, 0)):
                full.arrive(0)
        with cute.when(cute.less(31, thread)):
            if waits:
                full.wait(0)
            out[thread] = shared[63 - thread]

    return made


def test_an_mbarrier_orders_a_write_before_a_read() -> None:
    out = target(64)
    run(handover(), (out,))
    assert (out[32:] == 2).all()


def test_a_read_without_the_wait() -> None:
    with pytest.raises(Race):
        run(handover(waits=False), (target(64),))


def test_an_mbarrier_without_a_barrier_after_its_init() -> None:
    with pytest.raises(Race, match="no barrier orders this after the init of the mbarrier at byte 0 of"):
        run(handover(sync=False), (target(64),))


def test_a_deadlock_names_who_waits_for_what() -> None:
    with pytest.raises(Deadlock) as found:
        run(handover(count=2), (target(64),))
    said = str(found.value)
    assert "warp 1 at cute_nvgpu.arch.mbarrier.wait at" in said and "1 of 2 arrivals are missing" in said
    assert "1 other warps have ended" in said


@cute.kernel(VECTOR, threads=32)
def eager(out: Any) -> None:
    thread = arch.thread_idx()[0]
    full = Barriers(1, 1)
    with cute.when(cute.same(thread, 0)):
        full.init()
        full.expect(0, 128)
        full.arrive(0)
    out[thread] = 0.0


def test_too_many_arrivals() -> None:
    with pytest.raises(Finding, match="more than 1 arrivals in one phase"):
        run(eager, (target(32),))


@cute.kernel(VECTOR, threads=64)
def many(out: Any) -> None:
    thread = arch.thread_idx()[0]
    ring = Barriers(80, 1)
    shared = cute.shared_tensor("f32", Layout(32))
    with cute.when(cute.same(thread, 0)):
        ring.init()
    arch.sync_threads()
    with cute.when(cute.less(thread, 32)):
        shared[thread] = 3.0
        arch.instruction("warp_sync")
        with cute.when(cute.same(thread, 0)):
            ring.arrive(79)
    with cute.when(cute.less(31, thread)):
        ring.wait(79)
        out[thread] = shared[63 - thread]


def test_clocks_have_room_for_many_mbarriers() -> None:
    out = target(64)
    run(many, (out,))
    assert (out[32:] == 3).all()


def test_an_mbarrier_outside_of_shared_memory() -> None:
    @cute.kernel(VECTOR, threads=1)
    def made(_out: Any) -> None:
        arch.instruction("mbarrier.init", Barriers(1, 1).at(1), n=1)

    with pytest.raises(OutOfBounds, match="makes an mbarrier of 8 bytes from byte 8 of shared memory on"):
        run(made, (target(),))


def test_an_mbarrier_where_another_warp_still_reads() -> None:
    @cute.kernel(VECTOR, threads=64)
    def made(out: Any) -> None:
        thread = arch.thread_idx()[0]
        shared = cute.shared_tensor("f32", Layout(2))
        with cute.when(cute.same(thread, 0)):
            shared[0] = 1.0
            shared[1] = 1.0
        arch.sync_threads()
        with cute.when(cute.less(thread, 32)):
            out[thread] = shared[0]
        with cute.when(cute.same(thread, 32)):
            arch.instruction("mbarrier.init", cute.address(shared), n=1)

    with pytest.raises(Race, match=r"mbarrier.init at .*: no barrier orders the two"):
        run(made, (target(),))


@cute.kernel(cute.TensorMap(), cute.Array("f32"), threads=32)
def written_and_brought(source: Any, same: Any) -> None:
    thread = arch.thread_idx()[0]
    same[0, thread] = 1.0
    arch.instruction("fence.proxy_async_global")
    arch.instruction("warp_sync")
    with cute.when(cute.same(thread, 0)):
        full = Barriers(1, 1)
        full.init()
        arch.instruction("mbarrier.init_fence")
        full.expect(0, 4 * BOX[0] * BOX[1])
        tile = cute.shared_tensor("f32", Layout(BOX, (32, 1)), align=128)
        arch.instruction("copy.tma_load", cute.address(tile), source, full.at(0), 0, 0)
        full.wait(0)


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("fence.proxy_async_global", r"wrote without a proxy fence of global memory"),
        ("mbarrier.init_fence", r"no fence makes the init"),
    ],
)
def test_what_was_written_and_mbarriers_that_were_made_each_need_their_fence(missing: str, said: str) -> None:
    source = np.zeros(BOX, np.float32)
    run(written_and_brought, (TensorMap(source, BOX), source))
    with pytest.raises(MissingFence, match=said):
        run(without(written_and_brought, f"cute_nvgpu.arch.{missing}"), (TensorMap(source, BOX), source))


@pytest.mark.parametrize(("form", "enough"), [(".global", True), ("", True), (".shared::cta", False)])
def test_a_fence_is_of_global_or_of_shared_memory_or_of_both(form: str, enough: bool) -> None:
    """The same kernel as PTX, with each form of the fence."""
    text, source = written_and_brought.ptx("sm_90a"), np.zeros(BOX, np.float32)
    assert text.count("fence.proxy.async.global;") == 1
    text = text.replace("fence.proxy.async.global;", f"fence.proxy.async{form};")
    with nullcontext() if enough else pytest.raises(MissingFence, match="of global memory"):
        run(written_and_brought, (TensorMap(source, BOX), source), ptx=text)
