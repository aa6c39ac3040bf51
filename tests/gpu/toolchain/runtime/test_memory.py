from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest

from toolchain.errors import LaunchError, OutOfMemory, UsageError
from toolchain.runtime import Executor, gpus, open_executor
from toolchain.runtime.cuda import CudaExecutor

pytestmark = pytest.mark.needs("gpu")


def counted(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32])
def test_numpy_there_and_back(cuda: Executor, dtype: type) -> None:
    array = (counted(33, 65) % 200).astype(dtype)
    back = cuda.from_numpy(array).numpy()
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


def test_strided_views_are_read_and_written(cuda: Executor) -> None:
    array = counted(4, 6, 8, 16)
    buffer = cuda.from_numpy(array)
    assert np.array_equal(buffer.slice(1, 2, 5).numpy(), array[:, 2:5])
    assert np.array_equal(buffer.slice(3, 3, 7).numpy(), array[..., 3:7])
    assert np.array_equal(buffer.select(3, 5).numpy(), array[..., 5])
    array[:, 2, :, 4:8] = -counted(4, 8, 4)
    buffer.select(1, 2).slice(2, 4, 8).copy_from(-counted(4, 8, 4))
    array[:, 4, 3:5] = 9
    buffer.select(1, 4).slice(1, 3, 5).fill(9)
    assert np.array_equal(buffer.numpy(), array)


def test_several_buffers_in_one_allocation(cuda: Executor) -> None:
    memory = cuda.allocate(1024)
    whole = cuda.view(memory, 0, (256,), "i32")
    whole.fill(0)
    cuda.view(memory, 512, (6,), "i32").unflatten(0, 2, 3).copy_from(np.arange(1, 7, dtype=np.int32).reshape(2, 3))
    assert np.flatnonzero(whole.numpy()).tolist() == [128, 129, 130, 131, 132, 133]
    assert whole.unflatten(0, 64, 4).slice(1, 1, 3).unflatten(0, 8, 8).numpy()[4, 0].tolist() == [2, 3]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_fill_poisons(cuda: Executor, dtype: str) -> None:
    buffer = cuda.empty((1000, 33), dtype)
    buffer.fill(np.nan)
    assert np.isnan(buffer.numpy().astype(np.float32)).all()
    buffer.fill(-1.5)
    assert (buffer.numpy().astype(np.float32) == -1.5).all()


def test_empty_arrays(cuda: Executor) -> None:
    buffer = cuda.from_numpy(counted(0, 5))
    buffer.fill(1)
    assert buffer.numpy().shape == (0, 5)


def test_copies_between_buffers(cuda: Executor) -> None:
    source, target = cuda.from_numpy(counted(64)), cuda.empty((64,), "f32")
    target.copy_from(source)
    source.fill(0)
    assert np.array_equal(target.numpy(), counted(64))


def test_memory_returns_with_the_last_view(cuda: Executor) -> None:
    gib = 2**30
    most = gpus()[0].memory // gib
    for _ in range(2 * most // 8):  # twice the device in all, 8 GiB at a time
        view = cuda.empty((8 * gib // 4,), "f32").slice(0, 0, 4)
        view.fill(1)
        del view
        gc.collect()


def test_out_of_memory_leaves_the_executor_usable(cuda: Executor) -> None:
    with pytest.raises(OutOfMemory, match=r"cuda:0.* MiB free of"):
        cuda.empty((2**40,), "f32")
    assert np.array_equal(cuda.from_numpy(counted(8)).numpy(), counted(8))


def test_a_graph_replays_on_the_same_buffers(cuda: Executor) -> None:
    source, target = cuda.from_numpy(counted(64)), cuda.empty((64,), "f32")
    target.fill(0)
    with cuda.capture() as graph:
        inner = cuda.empty((64,), "f32")
        inner.copy_from(source)
        target.copy_from(inner)
        dropped = cuda.empty((64,), "f32")
        dropped.fill(3)
        del dropped
    del inner
    gc.collect()
    assert (target.numpy() == 0).all()
    for step in range(3):
        source.fill(step)
        noise = [cuda.from_numpy(counted(64)) for _ in range(4)]  # would take the graph's own memory if it were free
        graph.replay()
        assert (target.numpy() == step).all()
        del noise
    source.free()
    with pytest.raises(LaunchError, match="freed"):
        graph.replay()


def test_what_was_adopted_is_given_back_when_the_capture_ends(cuda: Executor) -> None:
    owner = cuda.from_numpy(counted(4))
    given: list[str] = []
    foreign = cuda.adopt(owner.pointer, 16, lambda: given.append("back"))
    with cuda.capture():
        owner.fill(1)
        foreign.free()
        assert not given
    assert given == ["back"]


def test_what_a_capture_cannot_hold(cuda: Executor) -> None:
    buffer = cuda.empty((4,), "f32")
    with cuda.capture() as graph:
        buffer.fill(1)
        for use in (buffer.numpy, cuda.synchronize, graph.replay, lambda: buffer.copy_from(counted(4))):
            with pytest.raises(UsageError):
                use()
    graph.replay()
    assert (buffer.numpy() == 1).all()


def test_an_error_inside_a_capture_ends_it(cuda: Executor) -> None:
    buffer = cuda.empty((4,), "f32")
    with pytest.raises(UsageError, match="shape"), cuda.capture() as graph:
        buffer.copy_from(cuda.empty((5,), "f32"))
    with pytest.raises(UsageError, match="not captured to its end"):
        graph.replay()
    buffer.fill(2)
    assert (buffer.numpy() == 2).all()


def test_times_are_of_the_device(cuda: Executor) -> None:
    large = cuda.empty((2**28,), "f32")  # 1 GiB: no GPU writes it in 50 us, all in well under a second
    assert 50 < cuda.time_us(lambda: large.fill(0), repeats=3) < 1e6


@pytest.mark.needs("two-gpus")
def test_each_gpu_has_its_own_memory(cuda: Executor) -> None:
    other = open_executor("cuda:1")
    assert isinstance(other, CudaExecutor)
    here, there = cuda.from_numpy(counted(8)), other.from_numpy(-counted(8))
    assert np.array_equal(here.numpy(), counted(8))
    assert np.array_equal(there.numpy(), -counted(8))
    with pytest.raises(UsageError, match="cuda:0"):
        other.adopt(here.pointer, here.nbytes, lambda: None)


def _default_pool() -> tuple[int, int]:
    """The bytes that the process's default pool keeps, and the most that it may keep."""
    from cuda.bindings import driver

    (status, device) = driver.cuDeviceGet(0)
    assert int(status) == 0
    status, pool = driver.cuDeviceGetDefaultMemPool(device)
    assert int(status) == 0
    attributes = driver.CUmemPool_attribute
    found: list[int] = []
    for attribute in (attributes.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, attributes.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD):
        status, value = driver.cuMemPoolGetAttribute(pool, attribute)
        assert int(status) == 0
        found.append(int(value))
    return found[0], found[1]


def test_the_default_pool_of_the_process_stays_as_it_is() -> None:
    before = _default_pool()
    with open_executor("cuda") as executor:
        executor.empty((2**20,), "f32").fill(1)
        executor.synchronize()
        assert _default_pool() == before


def test_a_closed_executor_gives_its_memory_back(cuda: Executor) -> None:
    gib = 2**30
    most = gpus()[0].memory // gib
    for _ in range(4):  # each takes more than half of the device
        with open_executor("cuda") as executor:
            kept = executor.empty((most * gib * 6 // 10 // 4,), "f32")
            kept.fill(1)
        assert kept.freed
        with pytest.raises(UsageError, match=r"closed|freed"):
            kept.numpy()
    assert np.array_equal(cuda.from_numpy(counted(8)).numpy(), counted(8))  # the context is still the other's


def test_a_graph_and_its_events_go_with_their_executor() -> None:
    with open_executor("cuda") as executor:
        buffer = executor.empty((4,), "f32")
        with executor.capture() as graph:
            buffer.fill(3)
        start = executor.record()
        graph.replay()
        assert executor.record().us_since(start) > 0
        assert (buffer.numpy() == 3).all()
    with pytest.raises(UsageError, match="closed"):
        graph.replay()
    del graph, start
    gc.collect()


def test_copies_beside_a_graphs_launches_end_with_it(cuda: Executor) -> None:
    first, second, third = (cuda.from_numpy(counted(1 << 20) + number) for number in range(3))
    with cuda.capture() as graph:
        first.fill(7)
        cuda.copy_beside([(second, first), (third, second)])
    graph.replay()
    assert (third.numpy() == 7).all() and (second.numpy() == 7).all()
