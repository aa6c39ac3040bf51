"""Arrays shared with PyTorch, in both directions, without a copy and in the right order."""

from __future__ import annotations

import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from toolchain.errors import UsageError
from toolchain.runtime import Executor

pytestmark = pytest.mark.needs("gpu", "torch")


@pytest.fixture
def torch() -> Any:
    import torch

    return torch


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
def test_dlpack_both_ways(cuda: Executor, torch: Any, dtype: str) -> None:
    tensor = torch.arange(48, device="cuda:0").reshape(6, 8).to(getattr(torch, dtype))
    buffer = cuda.from_dlpack(tensor[:, 2:6])
    assert buffer.pointer == tensor[:, 2:6].data_ptr()
    wanted = np.arange(48).reshape(6, 8)[:, 2:6]
    assert np.array_equal(buffer.numpy().astype(np.int64), wanted)
    buffer.fill(5)
    cuda.synchronize()
    assert (tensor[:, 2:6] == 5).all().item()
    back = torch.from_dlpack(buffer)
    assert (back.data_ptr(), back.dtype, back.stride()) == (buffer.pointer, tensor.dtype, (8, 1))


def test_cuda_array_interface_both_ways(cuda: Executor, torch: Any) -> None:
    buffer = cuda.from_numpy(np.arange(12, dtype=np.float32).reshape(3, 4)).slice(1, 1, 3)
    tensor = torch.as_tensor(buffer, device="cuda:0")
    assert tensor.data_ptr() == buffer.pointer
    assert tensor.tolist() == [[1, 2], [5, 6], [9, 10]]
    again = cuda.from_cuda_array(tensor)
    assert (again.pointer, again.strides) == (buffer.pointer, (4, 1))
    assert not hasattr(cuda.empty((2,), "bf16"), "__cuda_array_interface__")


def test_bfloat16_bits_through_cuda_array_interface(cuda: Executor, torch: Any) -> None:
    tensor = torch.tensor([1.5, -2.0], dtype=torch.bfloat16, device="cuda:0")
    buffer = cuda.from_cuda_array(tensor.view(torch.int16), dtype="bf16")
    assert buffer.numpy().tolist() == np.array([1.5, -2.0], ml_dtypes.bfloat16).tolist()


def test_a_reader_sees_what_was_launched_before(cuda: Executor, torch: Any) -> None:
    buffer = cuda.empty((2**28,), "f32")
    for value in range(5):
        buffer.fill(value)
        assert torch.from_dlpack(buffer)[-1].item() == value


def test_we_see_what_the_owner_launched_before(cuda: Executor, torch: Any) -> None:
    tensor = torch.zeros(2**28, device="cuda:0")
    for value in range(1, 5):
        tensor.fill_(value)
        assert cuda.from_dlpack(tensor).slice(0, 2**28 - 1, 2**28).numpy()[0] == value


def test_a_reader_keeps_the_memory_alive(cuda: Executor, torch: Any) -> None:
    tensor = torch.from_dlpack(cuda.from_numpy(np.full(1024, 3, np.float32)))
    gc.collect()
    others = [cuda.empty((1024,), "f32") for _ in range(16)]
    for other in others:
        other.fill(-1)
    cuda.synchronize()
    assert (tensor == 3).all().item()


def test_an_array_on_the_host_is_refused(cuda: Executor, torch: Any) -> None:
    with pytest.raises(UsageError, match=r"\(1, 0\)"):
        cuda.from_dlpack(torch.zeros(4))
    with pytest.raises(UsageError, match="__cuda_array_interface__"):
        cuda.from_cuda_array(np.zeros(4))
