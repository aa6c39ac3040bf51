"""Clusters: each other's shared memory, their barrier, copies to several blocks, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import i32

from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.executor import Deadlock, Finding, MissingFence, MissingWait, Race, TensorMap, run
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

ARCH = "cute_nvgpu.arch."
Array = np.ndarray[Any, Any]
BARRIER = """
    cute_nvgpu.arch.cluster.arrive() {atom = "release"} : () -> ()
    cute_nvgpu.arch.cluster.wait() : () -> ()"""
# Each block writes numbers to its shared memory and reads those of the block behind it.
EXCHANGE = """gpu.module @m {
  llvm.mlir.global internal @room() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x i32>
  llvm.func @k(%out: !llvm.ptr<1>)
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>, nvvm.cluster_dim = array<i32: 4>} {
    %one = arith.constant 1 : i32
    %many = arith.constant 32 : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %base = arith.muli %b, %many : i32
    %v = arith.addi %base, %t : i32
    %room = llvm.mlir.addressof @room : !llvm.ptr<3>
    %own = llvm.getelementptr %room[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %v, %own : i32, !llvm.ptr<3>
    BEFORE
    %rank = cute_nvgpu.arch.cluster.rank() : () -> i32
    %size = cute_nvgpu.arch.cluster.size() : () -> i32
    %next = arith.addi %rank, %one : i32
    %peer = arith.remui %next, %size : i32
    %there = cute_nvgpu.arch.cluster.map(%own, %peer) : (!llvm.ptr<3>, i32) -> i32
    %far = llvm.inttoptr %there : i32 to !llvm.ptr<7>
    %got = llvm.load %far : !llvm.ptr<7> -> i32
    AFTER
    %p = llvm.getelementptr %out[%v] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %got, %p : i32, !llvm.ptr<1>
    llvm.return
  }
}
"""


def exchange(before: str = BARRIER, after: str = BARRIER) -> list[int]:
    out = np.full(8 * 32, -1, np.int32)
    run(EXCHANGE.replace("BEFORE", before).replace("AFTER", after), (out,), 8)
    return out.tolist()


def test_a_block_reads_the_shared_memory_of_another() -> None:
    peers = [1, 2, 3, 0, 5, 6, 7, 4]
    assert exchange() == [32 * peer + t for peer in peers for t in range(32)]


@pytest.mark.parametrize("before", ["", BARRIER.replace("release", "relaxed")])
def test_what_another_block_has_written_needs_a_barrier_that_says_so(before: str) -> None:
    with pytest.raises(
        Race, match=r"reads byte 0 of shared memory of block \(\d, 0, 0\), which llvm.store .* no barrier"
    ):
        exchange(before=before)


def test_a_block_must_not_end_while_another_reads_its_memory() -> None:
    with pytest.raises(Finding, match=r"reaches shared memory of block \(\d, 0, 0\), which may have ended by then"):
        exchange(after="")


def test_arriving_is_not_waiting() -> None:
    arrives, waits = (f"\n{line}" for line in BARRIER.split("\n")[1:])
    with pytest.raises(Race, match="no barrier"):
        exchange(before=arrives, after=waits + BARRIER)


REGISTERS = """gpu.module @m {
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 1>} {
    %x = nvvm.read.ptx.sreg.ctaid.x : i32
    %y = nvvm.read.ptx.sreg.ctaid.y : i32
    %n = nvvm.read.ptx.sreg.nctaid.x : i32
    %r = arith.muli %y, %n : i32
    %i = arith.addi %r, %x : i32
    %v = nvvm.read.ptx.sreg.NAME : i32
    %p = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %v, %p : i32, !llvm.ptr<1>
    llvm.return
  }
}
"""


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("clusterid.x", [[0, 0, 1, 1]] * 6),
        ("clusterid.y", [[0] * 4] * 3 + [[1] * 4] * 3),
        ("cluster.ctaid.x", [[0, 1, 0, 1]] * 6),
        ("cluster.ctaid.y", [[0] * 4, [1] * 4, [2] * 4] * 2),
        ("cluster.ctarank", [[0, 1, 0, 1], [2, 3, 2, 3], [4, 5, 4, 5]] * 2),
        ("cluster.nctarank", [[6] * 4] * 6),
    ],
)
def test_registers_of_a_cluster_of_two_by_three(name: str, wanted: list[list[int]]) -> None:
    out = np.full((6, 4), -1, np.int32)
    run(REGISTERS.replace("NAME", name), (out,), (4, 6), cluster=(2, 3))
    assert out.tolist() == wanted


def test_a_grid_without_whole_clusters() -> None:
    with pytest.raises(UsageError, match=r"a grid of \(5, 1, 1\) blocks has no clusters of \(2, 1, 1\)"):
        run(REGISTERS.replace("NAME", "laneid"), (np.zeros(5, np.int32),), 5, cluster=2)


BOX = (8, 32)


def multicast(mask: int = 3) -> cute.Kernel:
    """The first block brings two boxes to both blocks, one after the other to the same place; each takes them away."""

    @cute.kernel(cute.TensorMap(), cute.Array("f32", rank=3), threads=32)
    def made(source: Any, out: Any) -> None:
        thread, block = arch.thread_idx()[0], arch.block_idx()[0]
        tile = cute.shared_tensor("f32", Layout(BOX, (32, 1)), align=128)
        full, free = Barriers(1, 1), Barriers(1, 2)
        with cute.when(cute.same(thread, 0)):
            full.init()
            free.init()
            arch.instruction("mbarrier.init_fence")
        arch.instruction("cluster.arrive", atom="release")
        arch.instruction("cluster.wait")
        first = arch.instruction("cluster.map", free.at(0), 0, results=[i32])[0]
        for step in range(2):
            with cute.when(cute.same(thread, 0)):
                full.expect(step, 8 * 32 * 4)
                with cute.when(cute.same(block, 0)):
                    if step:
                        free.wait(step - 1)
                    arch.instruction(
                        "copy.tma_load_multicast", cute.address(tile), source, full.at(0), mask, 0, 8 * step
                    )
            full.wait(step)
            for row in range(8):
                out[block, step * 8 + row, thread] = tile[row, thread]
            arch.instruction("warp_sync")
            with cute.when(cute.same(thread, 0)):
                arch.instruction("mbarrier.arrive_remote", first)
        arch.instruction("cluster.arrive", atom="release")
        arch.instruction("cluster.wait")

    return made


def launch(kernel: cute.Kernel) -> Array:
    source = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    out = np.zeros((2, 16, 32), np.float32)
    run(kernel, (TensorMap(source, BOX), out), 2, cluster=2)
    assert (out == source).all()
    return out


def test_a_copy_to_several_blocks() -> None:
    launch(multicast())


MISTAKES = [
    ("mbarrier.init_fence", 0, MissingFence),
    ("cluster.wait", 0, Race),  # the mbarriers of the other block may not be there
    ("mbarrier.wait", 0, (MissingWait, Race)),  # the copy overwrites what a block still reads
    ("mbarrier.wait", 1, MissingWait),  # a block reads before the copy has come
    ("mbarrier.arrive_remote", 0, Deadlock),
    ("cluster.wait", 1, Finding),  # the first block may end before the other arrives at its mbarrier
]


@pytest.mark.parametrize(("name", "which", "wanted"), MISTAKES)
def test_a_missing_operation(name: str, which: int, wanted: Any) -> None:
    with pytest.raises(wanted):
        launch(without(multicast(), ARCH + name, which))


@pytest.mark.parametrize(("mask", "left_out"), [(1, 1), (2, 0)])
def test_a_block_whose_bit_is_not_set_gets_nothing(mask: int, left_out: int) -> None:
    with pytest.raises(Deadlock) as found:
        launch(multicast(mask))
    assert f"warp 0 of block ({left_out}, 0, 0) at {ARCH}mbarrier.wait" in str(found.value)
    assert "0 of 1 arrivals are missing, 1024 bytes are missing" in str(found.value)


@cute.kernel(cute.Array("i32", rank=1), threads=32)
def mapped(rank: Any) -> None:
    shared = cute.shared_tensor("i32", Layout(32))
    arch.instruction("cluster.map", cute.address(shared), rank[arch.thread_idx()[0]], results=[i32])


def test_a_block_that_the_cluster_does_not_have() -> None:
    rank = np.zeros(32, np.int32)
    run(mapped, (rank,))
    rank[3] = 1
    with pytest.raises(Finding, match="thread 3: asks for block 1 of a cluster of 1"):
        run(mapped, (rank,))


@cute.kernel(cute.Array("f32", rank=1), threads=32)
def in_turn(out: Any) -> None:
    """Both blocks of a cluster write one array, with its barrier between."""
    thread, block = arch.thread_idx()[0], arch.block_idx()[0]
    with cute.when(cute.same(block, 0)):
        out[thread] = 1.0
    arch.instruction("cluster.arrive", atom="release")
    arch.instruction("cluster.wait")
    with cute.when(cute.same(block, 1)):
        out[thread] = 2.0


def test_blocks_of_a_cluster_may_write_an_array_in_turn() -> None:
    out = np.zeros(32, np.float32)
    run(in_turn, (out,), 2, cluster=2)
    assert (out == 2).all()
    with pytest.raises(Race, match="which another block wrote"):
        run(in_turn, (out,), 2)
    with pytest.raises(Race, match="no barrier orders the two"):
        run(without(in_turn, f"{ARCH}cluster.wait"), (out,), 2, cluster=2)
