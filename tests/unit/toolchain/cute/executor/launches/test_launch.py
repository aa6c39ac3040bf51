"""A launch: grids, threads, shared memory, and the report."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import OutOfBounds, Race, run
from toolchain.cute.executor.launches.launch import of_text, of_traced
from toolchain.cute.layout import Layout

VECTOR = cute.Array("f32", rank=1)


@cute.kernel(cute.Array("i32", rank=3), threads=32)
def numbered(out: Any) -> None:
    (x, y, z), (nx, ny, _) = arch.block_idx(), arch.grid_dim()
    out[x, y, z] = cute.scalar((z * ny + y) * nx + x, "i32")


def test_every_block_of_a_grid_runs_once() -> None:
    out = np.full((2, 3, 4), -1, np.int32)
    report = run(numbered, (out,), (2, 3, 4))
    assert sorted(out.reshape(-1).tolist()) == list(range(24))
    assert out[1, 2, 3] == 23 and out[1, 0, 0] == 1
    assert report.blocks == 24 and report.steps > 24


@pytest.mark.parametrize("cluster", [(2, 1, 1), (1, 3, 1), (1, 1, 2), (1, 1, 4), (2, 3, 2)])
def test_every_block_of_a_cluster_is_at_its_own_place(cluster: tuple[int, int, int]) -> None:
    out = np.full((2, 3, 4), -1, np.int32)
    assert run(numbered, (out,), (2, 3, 4), cluster=cluster).blocks == 24
    assert out.transpose(2, 1, 0).reshape(-1).tolist() == list(range(24))


@cute.kernel(VECTOR, threads=64)
def ends_outside(out: Any) -> None:
    out[arch.thread_idx()[0]] = 1.0


def test_arrays_keep_what_was_written_before_a_finding() -> None:
    out = np.zeros(40, np.float32)
    with pytest.raises(OutOfBounds):
        run(ends_outside, (out,))
    assert (out[:32] == 1).all() and (out[32:] == 0).all()  # the second warp's store failed as a whole


@cute.kernel(VECTOR, threads=32)
def columns(out: Any) -> None:
    thread = arch.thread_idx()[0]
    shared, pairs = cute.shared_tensor("f32", Layout(32 * 32)), cute.shared_tensor("f32", Layout(64))
    pairs[thread * 2] = 1.0
    shared[thread * 32] = 1.0
    out[thread] = shared[thread * 32] + pairs[thread * 2]


def test_a_report_names_the_worst_conflicts_first() -> None:
    report = run(columns, (np.zeros(32, np.float32),))
    assert [row.worst for row in report.conflicts] == [32, 32, 2, 2]
    lines = str(report).split("\n")
    assert lines[0] == "columns: 1 blocks ran, no error" and "test_launch.py:" in lines[2] and "32-way" in lines[2]
    assert str(run(ends_outside, (np.zeros(64, np.float32),))).endswith("  none")


@cute.kernel(VECTOR, VECTOR, threads=32)
def swapped(a: Any, b: Any) -> None:
    thread = arch.thread_idx()[0]
    a[thread] = b[31 - thread]


def test_arguments_may_be_named() -> None:
    a, b = np.zeros(32, np.float32), np.arange(32, dtype=np.float32)
    run(swapped, {"left": a, "right": b})
    assert (a == b[::-1]).all()
    with pytest.raises(OutOfBounds) as found:
        run(swapped, {"left": a, "right": b[:8].copy()})
    assert found.value.tensor == "right"


def test_an_array_that_is_given_twice_is_one() -> None:
    both = np.zeros(32, np.float32)
    with pytest.raises(Race, match="of the same warp"):
        run(exchanged, (both, both))


@cute.kernel(VECTOR, VECTOR, threads=32)
def exchanged(a: Any, b: Any) -> None:
    thread = arch.thread_idx()[0]
    a[thread] = 1.0
    b[31 - thread] = 2.0


def test_a_text_is_compiled_once() -> None:
    text = "gpu.module @m { llvm.func @k() attributes {nvvm.kernel, nvvm.reqntid = array<i32: 1>} { llvm.return } }"
    assert of_text(text) is of_text(text)
    assert run(text, ()).steps == 1


BLOCKS, THREADS = 8, 256


def polling(rounds: int) -> cute.Kernel:
    """Pairs of blocks tell each other words in each round, read what nobody else does, and pass on sums of it."""

    @cute.kernel(cute.Array("i64", rank=1), VECTOR, VECTOR, threads=THREADS)
    def kernel(words: Any, numbers: Any, out: Any) -> None:
        thread, block = arch.thread_idx()[0], arch.block_idx()[0]
        shared = cute.shared_tensor("f32", Layout(THREADS))
        for number in cute.range_(rounds):
            arch.sync_threads()
            shared[thread] = numbers[block * THREADS + thread]
            arch.sync_threads()
            first, side = (block - block % 2) * 2 + number % 2, block % 2
            places = [(first + 2 * which) * THREADS + thread for which in (1 - side, side)]
            there, here = (cute.address(cute.local_tile(words, (1,), (place,))) for place in places)
            arch.instruction("word.store", there, number + 1, shared[THREADS - 1 - thread], n=1)
            found = arch.instruction("word.wait", here, number + 1, results=[f32, i32], n=1)[0]
            out[block * THREADS + thread] = cute.Scalar(found)

    return kernel


def _peak(rounds: int, numbers: Any) -> int:
    """Bytes that a launch held at the same time."""
    words, out = np.zeros(BLOCKS * 2 * THREADS, np.int64), np.zeros(BLOCKS * THREADS, np.float32)
    kernel = polling(rounds)
    of_traced(kernel)  # what compiles is not of interest
    tracemalloc.start()
    run(kernel, (words, numbers, out), grid=BLOCKS, resident=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    told = numbers[: BLOCKS * THREADS].reshape(BLOCKS // 2, 2, THREADS)[:, ::-1, ::-1]
    assert np.array_equal(out, told.reshape(-1)) and (words & 0xFFFFFFFF >= rounds - 1).all()
    return peak


def test_memory_does_not_grow_with_what_blocks_do_until_they_end() -> None:
    numbers = np.arange(BLOCKS * THREADS, dtype=np.float32)
    _, few, many = (_peak(rounds, numbers) for rounds in (1, 3, 9))  # the first fills caches
    assert many < 1.02 * few


def test_memory_does_not_grow_with_arrays_times_warps() -> None:
    few, many = (np.arange(count, dtype=np.float32) for count in (BLOCKS * THREADS, 1 << 18))
    assert _peak(2, many) - _peak(2, few) < 64 * many.nbytes  # there are 64 warps
