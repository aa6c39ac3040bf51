"""The tensor maps of a launch: for kernels that read or write arrays through TMA, a descriptor of each array.

A map depends on an array's layout, which a prepared launch keeps, and on its address, which may be another each time.
Maps are kept by address: a loop that uses the same buffers makes each once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..contract.artifact import TensorMap
from ..contract.op import Param
from ..contract.tma import ALIGNED, BYTES, TMADescriptor
from ..errors import LaunchError, UsageError
from .buffer import DeviceBuffer

KEPT = 4096  # maps of one prepared launch; more are made anew

Encode = Callable[[TMADescriptor], bytes]


class TensorMaps:
    """Memory for the maps of one prepared launch, as its parameters point to it. `encode`: makes a map's bytes."""

    def __init__(self, descriptors: Sequence[tuple[int, TMADescriptor]], encode: Encode) -> None:
        """`descriptors`: of each map, with the number of its array among the launch's arrays."""
        self._encode, self._descriptors = encode, descriptors
        self._room = ctypes.create_string_buffer(BYTES * len(descriptors) + ALIGNED)
        start = ctypes.addressof(self._room)
        start += -start % ALIGNED
        self.addresses = [start + BYTES * number for number in range(len(descriptors))]
        self._kept: dict[tuple[int, int], bytes] = {}
        self._written = [-1] * len(descriptors)  # the address that each map in memory is of

    def write(self, pointers: Sequence[int]) -> None:
        """Writes the maps of arrays at these addresses, whose layouts are those that this was made for."""
        for number, (index, descriptor) in enumerate(self._descriptors):
            pointer = pointers[index]
            if self._written[number] == pointer:
                continue
            key = (number, pointer)
            made = self._kept.get(key)
            if made is None:
                if len(self._kept) >= KEPT:
                    self._kept.clear()
                made = self._kept[key] = self._encode(replace(descriptor, address=pointer))
            ctypes.memmove(self.addresses[number], made, BYTES)
            self._written[number] = pointer


def descriptors(
    symbol: str, maps: Sequence[TensorMap], params: Sequence[Param], arrays: Sequence[DeviceBuffer]
) -> list[tuple[int, TMADescriptor]]:
    """Of each map the descriptor, and the number of its array. `arrays`: those of the parameters that are arrays, in
    order. Raises LaunchError for one that TMA cannot read, with the reason."""
    names = [param.name for param in params if param.dims]
    found: list[tuple[int, TMADescriptor]] = []
    for made in maps:
        index = names.index(made.array)
        array, view = arrays[index], arrays[index].layout
        try:
            found.append((index, describe(made, view.dtype, array.pointer, view.shape, view.byte_strides)))
        except UsageError as error:
            raise LaunchError(f"{symbol}: {made.array} is {view}: {error.args[0]}") from error
    return found


def describe(
    made: TensorMap, dtype: str, address: int, shape: Sequence[int], byte_strides: Sequence[int]
) -> TMADescriptor:
    """The descriptor of an array. `byte_strides`: of all its dimensions, of which the last is contiguous. Raises
    UsageError that names the rule which is broken."""
    return TMADescriptor(
        dtype, address, tuple(shape[::-1]), tuple(byte_strides[-2::-1]), made.box[::-1], swizzle=made.swizzle,
        l2_promotion=made.l2_promotion,
    )  # fmt: skip
