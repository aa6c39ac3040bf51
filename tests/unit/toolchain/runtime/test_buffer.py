from __future__ import annotations

import gc
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from toolchain.errors import UsageError
from toolchain.runtime import open_executor
from toolchain.runtime.buffer import DeviceBuffer
from toolchain.runtime.cpu import CpuExecutor


def counted(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32])
def test_numpy_there_and_back(cpu: CpuExecutor, dtype: type) -> None:
    array = counted(3, 5).astype(dtype)
    back = cpu.from_numpy(array).numpy()
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)
    assert np.array_equal(cpu.from_numpy(array.T).numpy(), array.T)


def test_from_numpy_is_a_copy(cpu: CpuExecutor) -> None:
    array = counted(4)
    buffer = cpu.from_numpy(array)
    array[0] = 9
    assert buffer.numpy()[0] == 0
    buffer.numpy()[0] = 9
    assert buffer.numpy()[0] == 0


def test_views_see_what_numpy_sees(cpu: CpuExecutor) -> None:
    array = counted(4, 6, 8)
    buffer = cpu.from_numpy(array)
    assert np.array_equal(buffer.slice(1, 2, 5).numpy(), array[:, 2:5])
    assert np.array_equal(buffer.narrow(-1, 3, 2).numpy(), array[..., 3:5])
    assert np.array_equal(buffer.select(1, -1).numpy(), array[:, -1])
    assert np.array_equal(buffer.select(0, 2).select(0, 1).numpy(), array[2, 1])
    assert np.array_equal(buffer.reshape(2, -1, 4).numpy(), array.reshape(2, -1, 4))
    assert np.array_equal(buffer.slice(0, 1, 3).reshape(12, 8).numpy(), array[1:3].reshape(12, 8))
    assert buffer.slice(0, 4, 4).shape == (0, 6, 8)
    assert cpu.empty((4, 6, 0), "f32").slice(0, 1, 3).select(1, 5).shape == (2, 0)
    assert buffer.reshape(4, 6, 8).strides == (48, 8, 1)


def test_one_dimension_as_several(cpu: CpuExecutor) -> None:
    array = counted(4, 6, 8)
    buffer = cpu.from_numpy(array)
    assert np.array_equal(buffer.unflatten(1, 2, 3).numpy(), array.reshape(4, 2, 3, 8))
    assert np.array_equal(buffer.unflatten(-1, 2, 2, 2).numpy(), array.reshape(4, 6, 2, 2, 2))
    assert np.array_equal(buffer.unflatten(0, 4).numpy(), array)
    cut = buffer.slice(2, 1, 5)  # not contiguous, so it cannot be reshaped
    assert np.array_equal(cut.unflatten(1, 3, 2).numpy(), array[:, :, 1:5].reshape(4, 3, 2, 4))
    assert cut.unflatten(1, 3, 2).strides == (48, 16, 8, 1)
    assert buffer.slice(0, 0, 0).unflatten(0, 0, 5).shape == (0, 5, 6, 8)
    column = buffer.select(2, 3).unflatten(1, 2, 3)
    column.fill(-1)
    array[:, :, 3] = -1
    assert np.array_equal(buffer.numpy(), array)
    for bad in (
        lambda: buffer.unflatten(1, 2, 2), lambda: buffer.unflatten(1, -2, -3), lambda: buffer.unflatten(3, 1),
        lambda: buffer.unflatten(1),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            bad()
    buffer.free()
    with pytest.raises(UsageError, match="freed"):
        buffer.unflatten(1, 2, 3)


def test_several_buffers_in_one_allocation(cpu: CpuExecutor) -> None:
    memory = cpu.allocate(1024)
    whole = cpu.view(memory, 0, (256,), "i32")
    whole.fill(0)
    part, last = cpu.view(memory, 512, (2, 3), "i32"), cpu.view(memory, 1020, (1,), "i32")
    part.copy_from(np.arange(1, 7, dtype=np.int32).reshape(2, 3))
    last.fill(9)
    assert part.strides == (3, 1)
    assert part.allocation is last.allocation is memory
    assert np.flatnonzero(whole.numpy()).tolist() == [128, 129, 130, 131, 132, 133, 255]
    for offset, shape in ((1024, (1,)), (1020, (2,)), (0, (257,)), (-4, (1,)), (-2000, (2,))):
        with pytest.raises(UsageError, match="exceeds its memory of 1024 bytes"):
            cpu.view(memory, offset, shape, "i32")
    for offset, shape, problem in ((2, (1,), "not a multiple of its element's size"), (0, (-1, 4), "negative")):
        with pytest.raises(UsageError, match=problem):
            cpu.view(memory, offset, shape, "i32")
    with pytest.raises(UsageError, match="negative"):
        DeviceBuffer(cpu, memory, 512, "i32", (4, 4), (-4, 1))
    assert cpu.view(memory, 1024, (0, 5), "i32").shape == (0, 5)
    part.free()
    with pytest.raises(UsageError, match="freed"):
        whole.numpy()


def test_views_write_through(cpu: CpuExecutor) -> None:
    array = counted(3, 4)
    buffer = cpu.from_numpy(array)
    array[:, 1:3] = 7
    buffer.slice(1, 1, 3).fill(7)
    array[:, 3] = [10, 20, 30]
    buffer.select(1, 3).copy_from(np.array([10, 20, 30], np.float32))
    assert np.array_equal(buffer.numpy(), array)
    other = cpu.empty((3, 4), "f32")
    other.copy_from(buffer)
    assert np.array_equal(other.numpy(), array)


@pytest.mark.parametrize("value", [np.nan, -1.5, 0.0])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_fill_poisons(cpu: CpuExecutor, dtype: str, value: float) -> None:
    buffer = cpu.empty((3, 3), dtype)
    buffer.fill(value)
    assert np.array_equal(buffer.numpy().astype(np.float32), np.full((3, 3), value, np.float32), equal_nan=True)


def test_integers_are_filled_with_integers(cpu: CpuExecutor) -> None:
    buffer = cpu.empty((2,), "i32")
    for value in (2**31 - 1, float(-(2**31)), np.int64(7)):
        buffer.fill(value)
        assert buffer.numpy().tolist() == [value] * 2
    for value in (1.5, 2**31, 2**70, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="not a 32-bit integer"):
            buffer.fill(value)


def test_scalars_and_empty_arrays(cpu: CpuExecutor) -> None:
    assert cpu.from_numpy(np.float32(3).reshape(())).numpy() == 3
    assert cpu.from_numpy(counted(0, 5)).numpy().shape == (0, 5)


def test_views_that_do_not_exist(cpu: CpuExecutor) -> None:
    buffer = cpu.from_numpy(counted(4, 6))
    for bad in (
        lambda: buffer.slice(1, 2, 7), lambda: buffer.slice(1, -1, 2), lambda: buffer.slice(2, 0, 1),
        lambda: buffer.select(0, 4), lambda: buffer.select(0, -5), lambda: buffer.reshape(5, 5),
        lambda: buffer.reshape(-1, -1), lambda: buffer.reshape(-1, 7), lambda: buffer.slice(1, 0, 3).reshape(12),
        lambda: buffer.copy_from(counted(6, 4)), lambda: buffer.copy_from(counted(4, 6).astype(np.float16)),
        lambda: DeviceBuffer(cpu, buffer.allocation, 4, "f32", (24,), (1,)),
        lambda: buffer.slice(0, 0, 0).reshape(2**32, 2**32), lambda: buffer.copy_from(counted(4, 6).astype(">f4")),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            bad()


def test_a_view_keeps_its_memory(cpu: CpuExecutor) -> None:
    released: list[int] = []
    allocation = cpu.adopt(np.zeros(64, np.uint8).ctypes.data, 64, lambda: released.append(1))
    view = DeviceBuffer(cpu, allocation, 0, "f32", (4, 4), (4, 1)).select(0, 1)
    del allocation
    gc.collect()
    assert not released
    del view
    gc.collect()
    assert released == [1]


def test_use_after_free_is_an_error_in_every_view(cpu: CpuExecutor) -> None:
    buffer = cpu.from_numpy(counted(4, 4))
    view = buffer.select(0, 1)
    buffer.free()
    for use in (
        buffer.numpy, view.numpy, lambda: view.fill(1), lambda: view.copy_from(counted(4)), lambda: view.slice(0, 0, 1),
        buffer.__dlpack__, lambda: cpu.from_numpy(counted(4)).copy_from(view),
    ):  # fmt: skip
        with pytest.raises(UsageError, match="freed"):
            use()
    with pytest.raises(UsageError, match="already freed"):
        view.free()


def test_overlapping_buffers_are_not_copied(cpu: CpuExecutor) -> None:
    """A GPU copies them in an unspecified order."""
    buffer = cpu.from_numpy(counted(8))
    for target, source in (((1, 8), (0, 7)), ((0, 5), (3, 8))):
        with pytest.raises(UsageError, match="they overlap"):
            buffer.slice(0, *target).copy_from(buffer.slice(0, *source))
    buffer.slice(0, 4, 8).copy_from(buffer.slice(0, 0, 4))
    buffer.copy_from(buffer)
    assert buffer.numpy().tolist() == [0, 1, 2, 3] * 2


def test_buffers_of_another_executor_are_not_copied(cpu: CpuExecutor) -> None:
    with pytest.raises(UsageError, match=r"\.numpy\(\)"):
        cpu.empty((2,), "f32").copy_from(CpuExecutor().empty((2,), "f32"))


def test_executors_by_name() -> None:
    assert open_executor("cpu").kind == "cpu"
    for wrong in ("gpu", "cuda:", "cuda:x", "CPU"):
        with pytest.raises(UsageError):
            open_executor(wrong)


def test_the_runtime_starts_without_the_compiler_and_without_cuda() -> None:
    code = """if True:
        import sys, toolchain.runtime
        toolchain.runtime.open_executor("cpu").empty((2,), "bf16").fill(1)
        print(*{name.split(".")[0] for name in sys.modules})"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"xdsl", "cuda", "rich"} & set(run.stdout.split())
