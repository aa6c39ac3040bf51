"""Tensor maps of a launch: what the descriptors say, when they are made, and where a kernel finds them."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from toolchain.contract.artifact import TensorMap
from toolchain.contract.op import ops
from toolchain.contract.tma import ALIGNED, BYTES, TMADescriptor
from toolchain.errors import LaunchError
from toolchain.runtime import tensor_maps as module
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.tensor_maps import TensorMaps, descriptors

PARAMS = ops()["attention"].params
MAPS = (TensorMap("q", (1, 32, 1, 64), 128), TensorMap("v", (1, 16, 1, 64)))


class Encoder:
    """Stands in for the driver: a map's bytes are its address, again and again."""

    def __init__(self) -> None:
        self.made: list[TMADescriptor] = []

    def __call__(self, descriptor: TMADescriptor) -> bytes:
        self.made.append(descriptor)
        return descriptor.address.to_bytes(8, "little") * (BYTES // 8)


def arrays(executor: CpuExecutor, length: int = 5, width: int = 64) -> list[Any]:
    """q, k, v as slices of one array, and out."""
    qkv = executor.empty((2, length, 3, 3, width), "bf16")
    return [*(qkv.select(2, i) for i in range(3)), executor.empty((2, length, 3, width), "bf16")]


def addresses(maps: TensorMaps) -> list[int]:
    return [int.from_bytes(ctypes.string_at(place, 8), "little") for place in maps.addresses]


def test_a_map_describes_its_array(cpu: CpuExecutor) -> None:
    encoder, given = Encoder(), arrays(cpu)
    maps = TensorMaps(descriptors("k", MAPS, PARAMS, given), encoder)
    maps.write([array.pointer for array in given])
    q, v = encoder.made
    assert (q.sizes, q.strides, q.box) == ((64, 3, 5, 2), (128, 3 * 3 * 128, 5 * 3 * 3 * 128), (64, 1, 32, 1))
    assert (q.dtype, q.swizzle, q.l2_promotion, v.swizzle, v.box) == ("bf16", 128, 256, 0, (64, 1, 16, 1))
    assert addresses(maps) == [given[0].pointer, given[2].pointer]
    assert all(place % ALIGNED == 0 for place in maps.addresses)


def test_a_map_is_made_once_for_each_address(cpu: CpuExecutor) -> None:
    encoder, first, second = Encoder(), arrays(cpu), arrays(cpu)
    maps = TensorMaps(descriptors("k", MAPS, PARAMS, first), encoder)
    for given in (first, first, second, first, second):
        maps.write([array.pointer for array in given])
        assert addresses(maps) == [given[0].pointer, given[2].pointer]
    assert len(encoder.made) == 4


def test_few_are_kept(cpu: CpuExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    encoder, several = Encoder(), [arrays(cpu) for _ in range(3)]
    maps = TensorMaps(descriptors("k", MAPS, PARAMS, several[0]), encoder)
    for given in several * 2:
        maps.write([array.pointer for array in given])
        assert addresses(maps) == [given[0].pointer, given[2].pointer]
    assert len(encoder.made) == 12


def test_an_array_that_tma_cannot_read_is_refused(cpu: CpuExecutor) -> None:
    with pytest.raises(LaunchError, match=r"k: q is bf16\[2, 5, 3, 60\] .*stride 120 of dimension 1"):
        descriptors("k", MAPS, PARAMS, arrays(cpu, width=60))
