"""The parts of a launch on a GPU that need none; tests/gpu/tilestack has the rest."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

from tilestack.api.arguments.arrays import Array
from tilestack.api.arguments.binding import Argument
from tilestack.api.arguments.parameters import Parameter
from tilestack.api.launches import gpu
from toolchain.contract.artifact import TensorMap
from toolchain.contract.tma import TMADescriptor
from toolchain.errors import LaunchError

CODE: Any = SimpleNamespace(symbol="k")
EXECUTOR: Any = SimpleNamespace(stream=99)


def argument(name: str, device: int | None, stream: int | None = None, *, torch: bool = False) -> Argument:
    array = Array("float32", (2,), (1,), 4096, device, stream=stream, torch=torch)
    return Argument(Parameter(name, "array", "f32", 1), array, ())


def test_the_gpu_is_that_of_the_arrays() -> None:
    assert gpu.device_of("k", [argument("x", None), argument("y", 2)], 0) == 2
    assert gpu.device_of("k", [argument("x", None)], 1) == 1
    with pytest.raises(LaunchError, match="k: its arrays are on several GPUs: x on cuda:0, y on cuda:1"):
        gpu.device_of("k", [argument("x", 0), argument("y", 1)], 0)


def test_the_stream_is_pytorchs_then_anothers_then_ours() -> None:
    assert gpu.stream_of([argument("x", 0, 5), argument("y", 0, 7, torch=True)], EXECUTOR) == 7
    assert gpu.stream_of([argument("x", 0), argument("y", 0, 5)], EXECUTOR) == 5
    assert gpu.stream_of([argument("x", 0, 0, torch=True)], EXECUTOR) == 0  # the legacy default stream
    assert gpu.stream_of([argument("x", 0), argument("y", None)], EXECUTOR) == 99


@pytest.mark.parametrize(
    ("dtype", "value", "wanted"),
    [
        ("i32", -1, b"\xff\xff\xff\xff"), ("i64", 2, struct.pack("<q", 2)), ("i1", True, b"\x01"),
        ("f32", 0.5, struct.pack("<f", 0.5)), ("f16", 1.0, b"\x00\x3c"), ("bf16", 1.0, b"\x80\x3f"),
        ("f64", 0.5, struct.pack("<d", 0.5)),
    ],
)  # fmt: skip
def test_numbers_have_the_width_of_their_parameter(dtype: str, value: float, wanted: bytes) -> None:
    assert gpu._parameter(dtype, value, {}) == wanted


def test_an_array_is_its_address() -> None:
    array = Array("float32", (2,), (1,), 4096, None)
    assert gpu._parameter("ptr", array, {(True, array.place): 8192}) == struct.pack("<Q", 8192)


def test_an_array_for_the_copy_engine() -> None:
    """TMA's dimensions begin with the contiguous one, and its strides are bytes."""
    array = Array("float16", (64, 40), (48, 1), 4096, 0)
    given = Argument(Parameter("x", "array", "f16", 2), array, tuple(("i32", n) for n in (64, 40, 48, 1)))
    made = gpu.tensor_map(CODE, TensorMap("x", (16, 32), 64), [given], {(False, array.place): 4096})
    assert made == TMADescriptor("f16", 4096, (40, 64), (96,), (32, 16), swizzle=64, l2_promotion=256)
    odd = Argument(given.parameter, array, tuple(("i32", n) for n in (64, 40, 41, 1)))
    with pytest.raises(LaunchError, match=r"k: x is f16\[64, 40\] on cuda:0: TMADescriptor: stride 82"):
        gpu.tensor_map(CODE, TensorMap("x", (16, 32), 64), [odd], {(False, array.place): 4096})
