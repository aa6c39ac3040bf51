from __future__ import annotations

import array as buffers
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilestack.api.arguments.arrays import Array, is_array, view
from toolchain.errors import LaunchError


def test_a_numpy_array_is_seen_without_a_copy() -> None:
    x = np.zeros((3, 4), ml_dtypes.bfloat16)[:, ::2]
    seen = view(x, "x")
    assert (seen.dtype, seen.name, seen.shape, seen.strides, seen.device) == ("bf16", "bfloat16", (3, 2), (4, 2), None)
    assert seen.host is x and seen.address == x.ctypes.data and not seen.contiguous
    assert len(seen.span) == 2 * (2 * 4 + 1 * 2 + 1)


@pytest.mark.parametrize(
    ("dtype", "ours"), [("uint8", "i8"), ("int64", "i64"), ("bool", "i1"), (ml_dtypes.float8_e4m3fn, "f8E4M3FN")]
)
def test_element_types(dtype: Any, ours: str) -> None:
    assert view(np.zeros(2, dtype), "x").dtype == ours


def test_what_no_kernel_takes_is_named() -> None:
    with pytest.raises(LaunchError, match=r"^the weights is of complex64"):
        view(np.zeros(2, np.complex64), "the weights")
    with pytest.raises(LaunchError, match=r"^x is a array: neither an array nor a number"):
        view(buffers.array("f", [1.0]), "x")
    with pytest.raises(LaunchError, match="byte order"):
        view(np.zeros(2, ">f4"), "x")


class FromElsewhere:
    """An array of a library that only has DLPack."""

    def __init__(self, content: np.ndarray[Any, Any], kind: int = 1) -> None:
        self.content, self.kind = content, kind

    def __dlpack__(self, **options: Any) -> object:
        return self.content.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0


def test_dlpack_shares_the_memory() -> None:
    x = np.arange(6, dtype=np.float32)
    seen = view(FromElsewhere(x), "x")
    assert seen.address == x.ctypes.data and seen.writeable == x.flags.writeable


def test_a_device_that_is_neither_a_cpu_nor_cuda() -> None:
    with pytest.raises(LaunchError, match="x is on DLPack device 10"):
        view(FromElsewhere(np.zeros(2), kind=10), "x")


class OnGPU:
    """What CUDA's array interface shows of an array."""

    def __init__(self, **row: Any) -> None:
        self.device = type("Device", (), {"id": 1})
        self.__cuda_array_interface__ = {"typestr": "<f4", "shape": (2, 3), "data": (4096, False), "version": 3, **row}


def test_the_cuda_array_interface() -> None:
    seen = view(OnGPU(), "x")
    assert (seen.dtype, seen.shape, seen.strides, seen.address, seen.device) == ("f32", (2, 3), (3, 1), 4096, 1)
    assert seen.stream is None and seen.settled  # its owner will not wait for us
    assert view(OnGPU(stream=1), "x").settled  # nor where it handed its work over to the legacy default stream
    seen = view(OnGPU(strides=(16, 4), stream=7, data=(4096, True)), "x")
    assert (seen.strides, seen.stream, seen.settled, seen.writeable) == ((4, 1), 7, False, False)
    with pytest.raises(LaunchError, match="masked"):
        view(OnGPU(mask=1), "x")


def test_arrays_and_numbers() -> None:
    assert is_array(np.zeros(1)) and is_array(OnGPU()) and is_array(FromElsewhere(np.zeros(1)))
    assert not any(map(is_array, (1, 1.5, True, np.float32(1), "text", None, [1.0])))


def test_an_empty_array_spans_nothing() -> None:
    assert len(Array("float32", (0, 3), (3, 1), 64, None).span) == 0


@pytest.mark.needs("torch")
def test_tensors_of_the_cpu() -> None:
    import torch

    x = torch.zeros(4, 3, dtype=torch.bfloat16).T
    seen = view(x, "x")
    assert (seen.dtype, seen.shape, seen.strides, seen.address) == ("bf16", (3, 4), (1, 3), x.data_ptr())
    assert seen.host is not None and seen.host.dtype == ml_dtypes.bfloat16
    seen.host[...] = 1
    assert x.eq(1).all()
    with pytest.raises(LaunchError, match="without memory"):
        view(torch.zeros(2, device="meta"), "x")
    with pytest.raises(LaunchError, match="sparse"):
        view(torch.zeros(2).to_sparse(), "x")
