from __future__ import annotations

import gc
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

from toolchain.errors import UsageError
from toolchain.runtime import dlpack
from toolchain.runtime.cpu import CpuExecutor


@pytest.fixture
def array() -> np.ndarray:
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_numpy_reads_a_view_without_a_copy(cpu: CpuExecutor, array: np.ndarray) -> None:
    buffer = cpu.from_numpy(array)
    seen = np.from_dlpack(buffer.slice(2, 1, 3))
    assert np.array_equal(seen, array[..., 1:3])
    buffer.fill(5)
    assert (seen == 5).all()


def test_a_reader_keeps_the_memory_alive(cpu: CpuExecutor, array: np.ndarray) -> None:
    seen = np.from_dlpack(cpu.from_numpy(array))
    gc.collect()
    other = [cpu.empty(array.shape, "f32") for _ in range(8)]
    for buffer in other:
        buffer.fill(-1)
    assert np.array_equal(seen, array)


def test_freeing_takes_nothing_from_a_reader(cpu: CpuExecutor) -> None:
    """This holds for the executor's own memory, and for memory that it adopted from another library."""

    class Source(np.ndarray):
        pass

    source = np.arange(1 << 16, dtype=np.float32).view(Source)
    gone: list[int] = []
    weakref.finalize(source, gone.append, 1)
    for buffer in (cpu.from_numpy(np.asarray(source)), cpu.from_dlpack(source)):
        seen = np.from_dlpack(buffer)
        buffer.free()
        other = [np.full(1 << 16, -1, np.float32) for _ in range(4)]
        assert np.array_equal(seen, np.arange(1 << 16)) and len(other) == 4
    del source, buffer
    gc.collect()
    assert not gone
    del seen
    gc.collect()
    assert gone == [1]


def test_an_array_that_is_refused_is_given_back(cpu: CpuExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UsageError("on another device")

    array = np.zeros(16, np.float32)
    before = sys.getrefcount(array)
    monkeypatch.setattr(cpu, "adopt", refuse)
    with pytest.raises(UsageError, match="another device"):
        cpu.from_dlpack(array)
    assert sys.getrefcount(array) == before


def test_capsules_leave_nothing_behind(cpu: CpuExecutor, array: np.ndarray) -> None:
    buffer = cpu.from_numpy(array)
    before = len(dlpack._given)
    unread = buffer.__dlpack__()
    seen = np.from_dlpack(buffer)
    assert len(dlpack._given) == before + 2
    del unread, seen
    gc.collect()
    assert len(dlpack._given) == before


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_a_numpy_array_becomes_a_buffer_without_a_copy(cpu: CpuExecutor, array: np.ndarray, dtype: type) -> None:
    source = array.astype(dtype)
    buffer = cpu.from_dlpack(source[:, 1:])
    assert (buffer.shape, buffer.strides) == ((2, 2, 4), (12, 4, 1))
    source[0, 1, 0] = 77
    assert buffer.numpy()[0, 0, 0] == 77


def test_an_adopted_array_is_released_with_the_last_view(cpu: CpuExecutor) -> None:
    class Source(np.ndarray):
        pass

    gone: list[int] = []
    source = np.zeros(16, np.float32).view(Source)

    class Watch:
        def __del__(self) -> None:
            gone.append(1)

    source.watch = Watch()
    view = cpu.from_dlpack(source).slice(0, 2, 4)
    del source
    gc.collect()
    assert not gone
    del view
    gc.collect()
    assert gone == [1]


def test_bfloat16_passes_through_dlpack(cpu: CpuExecutor, array: np.ndarray) -> None:
    first = cpu.from_numpy(array.astype(ml_dtypes.bfloat16))
    second = cpu.from_dlpack(first)
    assert second.dtype == "bf16"
    assert second.pointer == first.pointer
    assert np.array_equal(second.numpy(), first.numpy())


def test_what_cannot_be_shared_is_refused(cpu: CpuExecutor, array: np.ndarray) -> None:
    with pytest.raises(UsageError, match="64 bits"):
        cpu.from_dlpack(array.astype(np.float64))
    with pytest.raises(UsageError, match="__dlpack__"):
        cpu.from_dlpack([1.0])
    with pytest.raises(UsageError, match="negative"):
        cpu.from_dlpack(array[:, ::-1])
    with pytest.raises(UsageError, match="not a multiple of its element's size"):
        cpu.from_dlpack(np.zeros(9, np.uint8)[1:].view(np.float32))
    with pytest.raises(UsageError, match="unversioned"):
        cpu.from_dlpack(Versioned(array))
    constant = array.copy()
    constant.flags.writeable = False
    with pytest.raises(UsageError, match=r"ndarray cannot be shared: .*readonly"):
        cpu.from_dlpack(constant)
    buffer = cpu.from_numpy(array)
    with pytest.raises(BufferError):
        buffer.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        buffer.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        buffer.__dlpack__(stream=1)
    with pytest.raises(UsageError, match="cannot reach"):
        cpu.from_cuda_array(buffer)
    assert not hasattr(buffer, "__cuda_array_interface__")


class Versioned:
    """Gives the newer form of capsule to readers that did not ask for it."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self) -> object:
        return self.array.__dlpack__(max_version=(1, 0))


class OnDevice:
    def __init__(self, device: tuple[int, int]) -> None:
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self) -> object:
        raise AssertionError("must not be asked for")


def test_an_array_of_another_device_is_refused(cpu: CpuExecutor) -> None:
    with pytest.raises(UsageError, match=r"\(2, 1\)"):
        cpu.from_dlpack(OnDevice((2, 1)))


class CudaArray:
    def __init__(self, **changes: object) -> None:
        row = {"version": 3, "shape": (2, 3), "typestr": "<f4", "data": (4096, False), "strides": None, "stream": 1}
        self.__cuda_array_interface__ = {**row, **changes}


def test_reading_cuda_array_interface() -> None:
    dense = dlpack.take_cuda_array(CudaArray(), None)
    assert (dense.address, dense.dtype, dense.shape, dense.strides, dense.stream) == (4096, "f32", (2, 3), (3, 1), 1)
    assert dlpack.take_cuda_array(CudaArray(strides=(40, 4)), None).strides == (10, 1)
    assert dlpack.take_cuda_array(CudaArray(typestr="<u2"), "bf16").dtype == "bf16"
    for row, dtype in (
        ({"typestr": "<f8"}, None), ({"typestr": "<f4"}, "bf16"), ({"strides": (-12, 4)}, None),
        ({"mask": object()}, None), ({"strides": (6, 2)}, None), ({}, "f64"),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            dlpack.take_cuda_array(CudaArray(**row), dtype)


def test_writing_cuda_array_interface() -> None:
    row = dlpack.cuda_array_interface(4096, "f16", (2, 3), (12, 2))
    assert row == {
        "version": 3,
        "shape": (2, 3),
        "strides": (12, 2),
        "typestr": "<f2",
        "data": (4096, False),
        "stream": 1,
    }
    with pytest.raises(AttributeError, match="DLPack"):
        dlpack.cuda_array_interface(4096, "bf16", (2,), (2,))
