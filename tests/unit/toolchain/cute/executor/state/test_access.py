"""Wrong accesses of memory, each named: what, where in Python, which thread, which element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl.trace import current
from toolchain.cute.dsl.values import ssa
from toolchain.cute.executor import Finding, Misaligned, OutOfBounds, Race, Uninitialised, run
from toolchain.cute.layout import Layout

VECTOR = cute.Array("f32", rank=1)


def line(text: str) -> int:
    """The number of the line of this file that holds a text."""
    return Path(__file__).read_text().split("\n").index(f"    {text}") + 1


@cute.kernel(VECTOR, VECTOR, threads=64)
def shift(source: Any, target: Any) -> None:
    thread = cute.arch.thread_idx()[0]
    target[thread] = source[thread + 4]


def test_an_access_beyond_an_array() -> None:
    source, target = np.arange(68, dtype=np.float32), np.zeros(64, np.float32)
    run(shift, (source, target))
    assert (target == source[4:]).all()
    with pytest.raises(OutOfBounds) as found:
        run(shift, (source[:66].copy(), target))
    error = found.value
    assert error.site.thread == 62 and error.tensor == "source" and error.address == 66 * 4
    assert f"test_access.py:{line('target[thread] = source[thread + 4]')}:22" in error.site.location
    assert "reads 4 bytes from source[66] on, outside of its shape (66,)" in str(error)
    assert "next: a tile that does not divide the shape needs a predicate" in str(error)


@cute.kernel(cute.Array("f32"), threads=32)
def clear_tile(matrix: Any) -> None:
    row = cute.arch.thread_idx()[0]
    for column in range(8):
        matrix[row, column] = 0.0


def test_an_access_beyond_a_row_is_not_one_of_the_next_row() -> None:
    run(clear_tile, (np.zeros((32, 8), np.float32),))
    with pytest.raises(OutOfBounds, match=r"writes 4 bytes from matrix\[0, 6\] on, outside of its shape \(32, 6\)"):
        run(clear_tile, (np.zeros((32, 6), np.float32),))


@cute.kernel(VECTOR, threads=32)
def beyond_shared(source: Any) -> None:
    thread = cute.arch.thread_idx()[0]
    shared = cute.shared_tensor("f32", Layout(16))
    shared[thread] = source[thread]


def test_an_access_beyond_shared_memory() -> None:
    with pytest.raises(
        OutOfBounds, match="thread 16: writes 4 bytes from byte 64 of shared memory on, outside of its 64 bytes"
    ):
        run(beyond_shared, (np.zeros(32, np.float32),))


MISALIGNED = """
gpu.module @m {
  llvm.func @odd(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %p = llvm.getelementptr %x[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
    llvm.return
  }
}
"""


def test_a_misaligned_vector() -> None:
    with pytest.raises(Misaligned, match=r"reads 16 bytes at argument 0\[1\], an address that is no multiple of 16"):
        run(MISALIGNED, (np.zeros(8, np.int32),), threads=1)


def exchange(*, barrier: bool, threads: int) -> cute.Kernel:
    @cute.kernel(VECTOR, VECTOR, threads=threads)
    def made(source: Any, target: Any) -> None:
        thread = cute.arch.thread_idx()[0]
        shared = cute.shared_tensor("f32", Layout(threads))
        shared[thread] = source[thread]
        if barrier:
            cute.arch.sync_threads()
        target[thread] = shared[threads - 1 - thread]

    return made


@pytest.mark.parametrize("threads", [32, 64, 96])
def test_threads_that_exchange_need_a_barrier(threads: int) -> None:
    source, target = np.arange(threads, dtype=np.float32), np.zeros(threads, np.float32)
    run(exchange(barrier=True, threads=threads), (source, target))
    assert (target == source[::-1]).all()
    with pytest.raises(Race) as found:
        run(exchange(barrier=False, threads=threads), (source, target))
    wanted = {32: "in thread 31 of the same warp: the warp has not synchronised since",
              64: "(warp 1) writes: no barrier", 96: "(warp 2) writes: no barrier"}[threads]  # fmt: skip
    assert wanted in str(found.value) and "shared tensor of" in str(found.value)


@cute.kernel(VECTOR, threads=64)
def half_written(target: Any) -> None:
    thread = cute.arch.thread_idx()[0]
    shared = cute.shared_tensor("f32", Layout(64))
    with cute.when(cute.less(thread, 32)):
        shared[thread] = 0.0
    cute.arch.sync_threads()
    target[thread] = shared[63 - thread]


def test_shared_memory_that_nothing_has_written() -> None:
    with pytest.raises(Uninitialised, match=r"thread 0: reads byte 252 of .*, which nothing has written"):
        run(half_written, (np.zeros(64, np.float32),))


@cute.kernel(VECTOR, threads=64)
def overwritten(target: Any) -> None:
    thread = cute.arch.thread_idx()[0]
    shared = cute.shared_tensor("f32", Layout(64))
    shared[thread] = 0.0
    cute.arch.sync_threads()
    with cute.when(cute.less(31, thread)):
        target[thread] = shared[63 - thread]
    with cute.when(cute.less(thread, 32)):
        shared[thread] = 1.0


def test_a_write_races_with_the_reads_before() -> None:
    with pytest.raises(Race, match=r"llvm.load at \S+ \(warp 1\) read: no barrier orders the two"):
        run(overwritten, (np.zeros(64, np.float32),))


@cute.kernel(VECTOR, VECTOR, threads=32)
def read_by_all_written_by_the_last(source: Any, target: Any) -> None:
    thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    target[block * 32 + thread] = source[thread]
    with cute.when(cute.same(block, 1)):
        source[thread] = 0.0


def test_a_block_that_writes_what_it_and_an_earlier_one_have_read() -> None:
    with pytest.raises(Race, match=r"writes source\[0\], which another block read"):
        run(read_by_all_written_by_the_last, (np.ones(32, np.float32), np.ones(64, np.float32)), 2)


def _as_float(number: Any) -> Any:
    return cute.Scalar(current().insert(arith.SIToFPOp(ssa(number), f32)).result)


@cute.kernel(VECTOR, threads=32)
def same_place(target: Any) -> None:
    thread = cute.arch.thread_idx()[0]
    target[thread // 2] = _as_float(thread)


def test_two_threads_write_different_values_at_once() -> None:
    with pytest.raises(Race, match=r"thread 1: writes target\[0\], to which thread 0 writes another value at once"):
        run(same_place, (np.zeros(16, np.float32),))


@cute.kernel(VECTOR, threads=32)
def each_block(target: Any) -> None:
    target[cute.arch.thread_idx()[0]] = 1.0


def test_blocks_that_write_the_same() -> None:
    run(each_block, (np.zeros(32, np.float32),), 1)
    with pytest.raises(Race, match="which another block wrote: nothing orders blocks of a launch") as found:
        run(each_block, (np.zeros(32, np.float32),), 2)
    assert found.value.site.block == (1, 0, 0)


@cute.kernel(VECTOR, threads=32)
def empty_register(target: Any) -> None:
    held = cute.make_fragment(4, "f32")
    held[0] = 1.0
    target[cute.arch.thread_idx()[0]] = held[1] + 1.0


def test_a_register_that_nothing_has_written() -> None:
    with pytest.raises(Uninitialised, match="a register is used that nothing has written"):
        run(empty_register, (np.zeros(32, np.float32),))


@cute.kernel(VECTOR, threads=64)
def some_registers(target: Any) -> None:
    thread = cute.arch.thread_idx()[0]
    held = cute.make_fragment(1, "f32")
    with cute.when(cute.less(thread, 8)):
        held[0] = 1.0
    with cute.when(cute.less(thread, target.shape)):
        target[thread] = held[0]


def test_a_register_that_some_threads_have_written() -> None:
    target = np.zeros(8, np.float32)
    run(some_registers, (target,))
    assert (target == 1).all()
    with pytest.raises(Uninitialised) as found:
        run(some_registers, (np.zeros(9, np.float32),))
    assert isinstance(found.value, Finding) and found.value.site.thread == 8


BEYOND = """
gpu.module @m {
  llvm.func @k(%x: !llvm.ptr<1>, %i: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %one = arith.constant 1 : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %a = llvm.alloca %one x !llvm.array<5 x i32> : (i32) -> !llvm.ptr
    %b = llvm.alloca %one x !llvm.array<4 x i32> : (i32) -> !llvm.ptr
    %p = llvm.getelementptr %a[INDEX] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    llvm.store %one, %p : i32, !llvm.ptr
    llvm.return
  }
}
"""


@pytest.mark.parametrize(("index", "given", "thread"), [("%i", 5, None), ("%t", 0, 5)])
def test_registers_beyond_those_of_a_tensor(index: str, given: int, thread: int | None) -> None:
    run(BEYOND.replace("INDEX", "%i"), (np.zeros(1, np.int32), 4))
    with pytest.raises(OutOfBounds, match="beyond the registers of the tensor") as found:
        run(BEYOND.replace("INDEX", index), (np.zeros(1, np.int32), given))
    assert found.value.site.thread == thread
