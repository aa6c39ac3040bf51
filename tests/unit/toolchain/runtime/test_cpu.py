from __future__ import annotations

import gc
import time

import numpy as np
import pytest

from toolchain.errors import LaunchError, OutOfMemory, UsageError
from toolchain.runtime.cpu import CpuExecutor


def test_a_graph_runs_when_replayed_and_not_before(cpu: CpuExecutor) -> None:
    first, second = cpu.empty((4,), "i32"), cpu.empty((4,), "i32")
    second.fill(0)
    with cpu.capture() as graph:
        first.fill(7)
        second.copy_from(first)
    assert second.numpy().tolist() == [0] * 4
    for _ in range(2):
        graph.replay()
        assert second.numpy().tolist() == [7] * 4
        second.fill(0)


def test_graphs_beside_each_other_run_in_turn(cpu: CpuExecutor) -> None:
    x = cpu.from_numpy(np.zeros(1, np.float32))
    y = cpu.empty((1,), "f32")
    with cpu.capture() as first:
        x.fill(1)
    with cpu.capture() as second:
        y.copy_from(x)
        x.fill(2)
    with cpu.beside() as start:
        first.replay()
        start(second)
        assert (x.numpy()[0], y.numpy()[0]) == (2, 1)
    with pytest.raises(UsageError, match="beside each other inside a capture"), cpu.capture(), cpu.beside():
        pass


def test_a_graph_keeps_its_buffers_alive(cpu: CpuExecutor) -> None:
    target = cpu.empty((4,), "i32")
    with cpu.capture() as graph:
        inner = cpu.empty((4,), "i32")
        inner.fill(3)
        target.copy_from(inner)
    del inner
    gc.collect()
    graph.replay()
    assert target.numpy().tolist() == [3] * 4
    target.free()
    with pytest.raises(LaunchError, match="freed"):
        graph.replay()


def test_a_graph_minds_its_own_buffers(cpu: CpuExecutor) -> None:
    """The memory of each view it uses must stay alive; memory that the graph does not use may be freed."""
    memory = cpu.allocate(64)
    first, second, other = cpu.view(memory, 0, (4,), "i32"), cpu.view(memory, 32, (4,), "i32"), cpu.empty((4,), "i32")
    with cpu.capture() as graph:
        first.fill(7)
    other.free()
    graph.replay()
    assert first.numpy().tolist() == [7] * 4
    second.free()
    for _ in range(2):
        with pytest.raises(LaunchError, match="buffer that this graph uses was freed"):
            graph.replay()


def test_what_a_capture_cannot_hold(cpu: CpuExecutor) -> None:
    buffer = cpu.empty((4,), "f32")
    with cpu.capture() as graph:
        for use in (
            buffer.numpy, lambda: buffer.copy_from(np.zeros(4, np.float32)), cpu.synchronize, graph.replay,
            lambda: cpu.capture().__enter__(),
        ):  # fmt: skip
            with pytest.raises(UsageError):
                use()
    graph.replay()


def test_an_error_inside_a_capture_ends_it(cpu: CpuExecutor) -> None:
    buffer = cpu.empty((2,), "f32")
    with pytest.raises(UsageError, match="shape"), cpu.capture() as graph:
        buffer.copy_from(cpu.empty((3,), "f32"))
    with pytest.raises(UsageError, match="not captured to its end"):
        graph.replay()
    buffer.fill(2)
    assert buffer.numpy().tolist() == [2, 2]


def test_allocations_are_aligned_like_a_gpus(cpu: CpuExecutor) -> None:
    assert all(cpu.empty((size,), "f16").pointer % 256 == 0 for size in (1, 3, 1000))


def test_times_are_in_microseconds(cpu: CpuExecutor) -> None:
    calls: list[int] = []
    times = cpu.times_us(lambda: (calls.append(1), time.sleep(0.002)), repeats=3)
    assert len(calls) == 4
    assert len(times) == 3
    assert min(times) >= 2000
    assert cpu.time_us(lambda: None, repeats=1) >= 0


def test_shapes_and_dtypes_of_empty(cpu: CpuExecutor) -> None:
    with pytest.raises(UsageError, match="negative"):
        cpu.empty((2, -1), "f32")
    with pytest.raises(UsageError, match="tf32"):
        cpu.empty((2,), "tf32")
    for size in (2**58, 2**61, 2**70):
        with pytest.raises(OutOfMemory, match=str(4 * size)):
            cpu.empty((size,), "f32")


def test_a_closed_executor_frees_its_buffers_and_refuses_work() -> None:
    given: list[str] = []
    array = np.zeros(4, np.int32)
    with CpuExecutor() as cpu:
        buffer = cpu.empty((4,), "i32")
        with cpu.capture() as graph:
            buffer.fill(1)
        _kept = cpu.adopt(array.ctypes.data, array.nbytes, lambda: given.append("back"))
        with pytest.raises(UsageError, match="cannot be closed inside a capture"), cpu.capture():
            cpu.close()
    assert given == ["back"]
    assert buffer.freed
    for use in (
        cpu.synchronize, cpu.record, lambda: cpu.empty((4,), "i32"), lambda: cpu.capture().__enter__(),
        lambda: cpu.adopt(array.ctypes.data, array.nbytes, lambda: None),
    ):  # fmt: skip
        with pytest.raises(UsageError, match="used after it was closed"):
            use()
    with pytest.raises(LaunchError, match="freed"):
        graph.replay()
    cpu.close()
