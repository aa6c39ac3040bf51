"""DeviceBuffer: one owner, explicit copies."""

from __future__ import annotations

import copy

import ml_dtypes
import numpy as np
import pytest

from cute_runtime import DeviceBuffer
from toolchain.errors import UsageError

from .fake import FakeGPU


@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_elements_go_there_and_back(gpu: FakeGPU, dtype: type) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    buffer = DeviceBuffer.from_numpy(array)
    assert (buffer.shape, buffer.dtype, buffer.nbytes) == ((2, 3), array.dtype, array.nbytes)
    assert np.array_equal(buffer.numpy(), array)
    turned = np.zeros((3, 2), dtype).T  # with gaps between its rows
    buffer.copy_to(turned)
    assert np.array_equal(turned, array)
    buffer.free()
    with pytest.raises(UsageError, match="after its memory was moved or freed"):
        buffer.numpy()
    assert gpu.left.get("cuMemFreeAsync", 0) == 0


def test_it_is_moved_and_not_copied(gpu: FakeGPU) -> None:
    first = DeviceBuffer((3,), np.float32)
    second = first.move()
    assert second.pointer and "empty" in repr(first)
    with pytest.raises(UsageError, match="moved or freed"):
        first.move()
    for how in (copy.copy, copy.deepcopy):
        with pytest.raises(UsageError, match="its memory has one owner"):
            how(second)
    del first, second
    assert gpu.left.get("cuMemFreeAsync", 0) == 0


def test_another_shape_or_dtype_or_a_read_only_array(gpu: FakeGPU) -> None:
    del gpu
    buffer = DeviceBuffer((3,), np.float32)
    for array in (np.zeros(4, np.float32), np.zeros(3, np.float64)):
        with pytest.raises(UsageError, match="shape and dtype must be equal"):
            buffer.copy_from(array)
    array = np.zeros(3, np.float32)
    array.flags.writeable = False
    with pytest.raises(UsageError, match="read-only"):
        buffer.copy_to(array)
