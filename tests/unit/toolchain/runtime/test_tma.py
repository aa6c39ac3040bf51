"""The bytes of descriptors for the copy engine: what reaches the driver."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
from cuda.bindings import driver as real

from tests.unit.cute_runtime.tma_cases import CASES
from tests.unit.toolchain.contract.test_tma import descriptor
from toolchain.contract.im2col import Im2colDescriptor
from toolchain.contract.tma import BYTES, TMADescriptor
from toolchain.errors import DeviceError
from toolchain.runtime.tma import encode

CONTENT = ctypes.create_string_buffer(bytes(range(BYTES)), BYTES)


class Encoder:
    """A driver that makes the same descriptor each time and remembers the arguments."""

    status = real.CUresult.CUDA_SUCCESS

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)

    def cuTensorMapEncodeTiled(self, *args: Any) -> tuple[Any, Any]:  # noqa: N802 - the driver's name
        self.args = args
        return self.status, SimpleNamespace(getPtr=lambda: ctypes.addressof(CONTENT))

    cuTensorMapEncodeIm2col = cuTensorMapEncodeTiled  # noqa: N815 - the driver's name


def test_a_descriptor_that_fits_is_128_bytes() -> None:
    assert {encode(descriptor(case), Encoder()) for case in CASES if not case.says} == {bytes(range(BYTES))}


def test_what_reaches_the_driver() -> None:
    encoder = Encoder()
    encode(TMADescriptor("bf16", 4096, (64, 3), (128,), (32, 3), (1, 2), 64, 256, "nan"), encoder)
    kind, rank, address, sizes, strides, box, steps, interleave, swizzle, promotion, fill = encoder.args
    assert (kind.name, int(rank), int(address)) == ("CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", 2, 4096)
    assert [[int(n) for n in numbers] for numbers in (sizes, strides, box, steps)] == [[64, 3], [128], [32, 3], [1, 2]]
    assert [word.name.removeprefix("CU_TENSOR_MAP_") for word in (interleave, swizzle, promotion, fill)] == [
        "INTERLEAVE_NONE", "SWIZZLE_64B", "L2_PROMOTION_L2_256B", "FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA",
    ]  # fmt: skip


def test_what_reaches_the_driver_of_images() -> None:
    encoder = Encoder()
    encode(Im2colDescriptor("f16", 4096, (64, 9, 7, 2), (128, 1152, 8064), (-1, -2), (1, 2), 32, 128), encoder)
    kind, rank, _, sizes, strides, *corners, channels, pixels, steps = encoder.args[:10]
    assert (kind.name, int(rank), int(channels), int(pixels)) == ("CU_TENSOR_MAP_DATA_TYPE_FLOAT16", 4, 32, 128)
    assert [[int(n) for n in numbers] for numbers in (sizes, strides, *corners, steps)] == [
        [64, 9, 7, 2], [128, 1152, 8064], [-1, -2], [1, 2], [1, 1, 1, 1],
    ]  # fmt: skip


def test_an_error_of_the_driver() -> None:
    encoder = Encoder()
    encoder.status = real.CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(DeviceError, match="cuTensorMapEncodeTiled failed while making a TMADescriptor"):
        encode(descriptor(CASES[0]), encoder)
