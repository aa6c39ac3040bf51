"""Descriptors for the copy engine: what is refused, and what reaches the driver."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
from cuda.bindings import driver as real

from tests.unit.cute_runtime.tma_cases import CASES, Case
from toolchain.errors import DeviceError, UsageError
from toolchain.runtime.tma import BYTES, TMADescriptor

CONTENT = ctypes.create_string_buffer(bytes(range(BYTES)), BYTES)


class Encoder:
    """A driver that makes the same descriptor each time and remembers the arguments."""

    status = real.CUresult.CUDA_SUCCESS

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)

    def cuTensorMapEncodeTiled(self, *args: Any) -> tuple[Any, Any]:  # noqa: N802 - the driver's name
        self.args = args
        return self.status, SimpleNamespace(getPtr=lambda: ctypes.addressof(CONTENT))


def descriptor(case: Case) -> TMADescriptor:
    fields = case._asdict()
    del fields["says"]
    return TMADescriptor(**fields)


@pytest.mark.parametrize("case", CASES, ids=[case.says or "fits" for case in CASES])
def test_what_the_copy_engine_cannot_use_is_refused(case: Case) -> None:
    if not case.says:
        assert descriptor(case).encode(Encoder()) == bytes(range(BYTES))
        return
    with pytest.raises(UsageError) as caught:
        descriptor(case)
    assert case.says in str(caught.value)


@pytest.mark.parametrize(("field", "value"), [("dtype", "f4"), ("swizzle", 16), ("l2_promotion", 32), ("fill", "one")])
def test_a_word_that_is_unknown(field: str, value: Any) -> None:
    fields: dict[str, Any] = {"dtype": "f32", "address": 0, "sizes": (4, 4), "strides": (16,), "box": (4, 4)}
    with pytest.raises(UsageError, match=f"{field} {value!r}: it must be one of"):
        TMADescriptor(**{**fields, field: value})


def test_what_reaches_the_driver() -> None:
    encoder = Encoder()
    TMADescriptor("bf16", 4096, (64, 3), (128,), (32, 3), (1, 2), 64, 256, "nan").encode(encoder)
    kind, rank, address, sizes, strides, box, steps, interleave, swizzle, promotion, fill = encoder.args
    assert (kind.name, int(rank), int(address)) == ("CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", 2, 4096)
    assert [[int(n) for n in numbers] for numbers in (sizes, strides, box, steps)] == [[64, 3], [128], [32, 3], [1, 2]]
    assert [word.name.removeprefix("CU_TENSOR_MAP_") for word in (interleave, swizzle, promotion, fill)] == [
        "INTERLEAVE_NONE", "SWIZZLE_64B", "L2_PROMOTION_L2_256B", "FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA",
    ]  # fmt: skip


def test_an_error_of_the_driver() -> None:
    encoder = Encoder()
    encoder.status = real.CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(DeviceError, match="cuTensorMapEncodeTiled failed while making a TMADescriptor"):
        descriptor(CASES[0]).encode(encoder)
