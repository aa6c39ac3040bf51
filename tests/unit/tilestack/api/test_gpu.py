"""The parts of a launch on a GPU that need none; tests/gpu/tilestack has the rest."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

from tilestack.api import gpu
from tilestack.api.arrays import Array
from tilestack.api.binding import Argument
from tilestack.api.parameters import Parameter
from toolchain.errors import LaunchError

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
    assert gpu._packed(dtype, value, {}) == wanted


def test_an_array_is_its_address() -> None:
    array = Array("float32", (2,), (1,), 4096, None)
    assert gpu._packed("ptr", array, {(True, array.place): 8192}) == struct.pack("<Q", 8192)
