"""From numpy arrays and numbers to the arguments of a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import llvm
from xdsl.ir import Attribute

from ....contract.im2col import Im2colDescriptor
from ....contract.tma import TMADescriptor
from ....errors import UsageError
from ...dsl.values import Array
from ..instructions.tma import Map
from ..program.values import kind_of
from ..state.memory import GlobalMemory, Region

ALIGN = 16  # bytes, of the pointer of an array about which the kernel says nothing
TMA_NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "int32": "i32", "int64": "i64",
             "uint8": "u8", "int8": "i8", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2"}  # fmt: skip
NUMPY_NAMES = {"f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64",
               "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "s8": "int8", "u8": "uint8", "i8": "int8",
               "i16": "int16", "i32": "int32", "i64": "int64"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class TensorMap:
    """An argument: the TMA descriptor of an array. `box`: the elements that one copy moves, in the order of the array's
    dimensions. `swizzle`: bytes. `fill`: what a copy reads outside of the array."""

    array: NDArray[Any]
    box: tuple[int, ...]
    swizzle: int = 0
    fill: str = "zero"

    def descriptor(self, region: Region) -> TMADescriptor:
        """That of the array where it lies. Raises UsageError."""
        said = _described(self.array, region)
        return TMADescriptor(*said, tuple(reversed(self.box)), swizzle=self.swizzle, fill=self.fill)


@dataclass(frozen=True, eq=False)
class ImageMap:
    """An argument: the TMA descriptor of images (N, [D, [H,]] W, C), for copies in im2col mode. `lower`, `upper`: the
    corners, in the order of the array's dimensions. The rest is as an Im2colDescriptor has it."""

    array: NDArray[Any]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int
    steps: tuple[int, ...] = ()
    swizzle: int = 0
    fill: str = "zero"

    def descriptor(self, region: Region) -> Im2colDescriptor:
        """That of the images where they lie. Raises UsageError."""
        corners = tuple(reversed(self.lower)), tuple(reversed(self.upper))
        steps = (1, *reversed(self.steps), 1) if self.steps else ()
        return Im2colDescriptor(
            *_described(self.array, region), *corners, self.channels, self.pixels, steps, self.swizzle, fill=self.fill
        )


MAPS = (TensorMap, ImageMap)


def _described(array: NDArray[Any], region: Region) -> tuple[str, int, tuple[int, ...], tuple[int, ...]]:
    """The dtype, the address, the sizes and the strides in bytes, from the contiguous dimension on."""
    dtype = TMA_NAMES.get(array.dtype.name, array.dtype.name)
    return dtype, region.base, tuple(reversed(array.shape)), tuple(reversed(region.pitches[:-1]))


class Arguments:
    """Puts arrays into memory, each once, and makes the registers that a kernel begins with."""

    def __init__(self, memory: GlobalMemory, names: Sequence[str] = ()) -> None:
        self.memory, self.names = memory, names
        self.known: dict[int, Region] = {}

    def name(self, number: int) -> str:
        """Of an argument."""
        return self.names[number] if number < len(self.names) else f"argument {number}"

    def of_parameters(self, parameters: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The arguments of a kernel in Python. Rows of arrays are further apart than they are long: what lies beyond a
        row is not the next one. Raises UsageError."""
        if len(args) != len(parameters):
            raise UsageError(f"the kernel takes {len(parameters)} arguments, {len(args)} are given")
        units, aligns = dict[int, int](), dict[int, int]()
        for parameter, arg in zip(parameters, args, strict=True):
            array = arg.array if isinstance(arg, MAPS) else arg
            if not isinstance(array, np.ndarray):
                continue
            unit = ALIGN if isinstance(arg, MAPS) else getattr(parameter, "multiple", 1) * array.itemsize
            units[id(array)] = math.lcm(unit, units.get(id(array), 1))
            aligns[id(array)] = max(getattr(parameter, "align", ALIGN), aligns.get(id(array), 1))
        made: list[Any] = []
        for number, (parameter, arg) in enumerate(zip(parameters, args, strict=True)):
            name = self.name(number)
            key = id(arg.array if isinstance(arg, MAPS) else arg)
            if isinstance(arg, MAPS):
                made.append(self.tensor_map(name, arg, units[key]))
            elif isinstance(parameter, Array):
                _check(name, parameter, arg)
                made += self.array(name, arg, align=aligns[key], unit=units[key])
            else:
                if len(parameter.types) != 1 or isinstance(arg, np.ndarray):
                    raise UsageError(f"{name}: {type(arg).__name__} is no argument for a {type(parameter).__name__}")
                made.append(_number(name, parameter.types[0], arg))
        return made

    def of_types(self, types: Sequence[Attribute], args: Sequence[Any]) -> list[Any]:
        """The arguments of a kernel in MLIR text, one for each parameter: an array is its pointer."""
        if len(args) != len(types):
            raise UsageError(f"the kernel has {len(types)} parameters, {len(args)} arguments are given")
        made: list[Any] = []
        for number, (kind, arg) in enumerate(zip(types, args, strict=True)):
            name = self.name(number)
            if isinstance(arg, MAPS):
                made.append(self.tensor_map(name, arg, 0))
            elif isinstance(arg, np.ndarray) and isinstance(kind, llvm.LLVMPointerType):
                made.append(np.array([self._region(name, arg, ALIGN, 0).base]))
            else:
                made.append(_number(name, kind, arg))
        return made

    def _region(self, name: str, array: NDArray[Any], align: int, unit: int) -> Region:
        if id(array) not in self.known:
            self.known[id(array)] = self.memory.add(name, array, align=align, unit=unit)
        return self.known[id(array)]

    def array(self, name: str, array: NDArray[Any], *, align: int, unit: int) -> list[Any]:
        """An array as its pointer, its sizes and its strides."""
        region = self._region(name, array, align, unit)
        strides = [pitch // array.itemsize for pitch in region.pitches]
        return [np.array([region.base]), *(np.array([n], np.int32) for n in (*array.shape, *strides))]

    def tensor_map(self, name: str, arg: TensorMap | ImageMap, unit: int) -> Map:
        """A descriptor of an array. Raises UsageError."""
        region = self._region(name, arg.array, ALIGN, unit)
        return Map(region, arg.descriptor(region))


def _check(name: str, parameter: Array, arg: Any) -> None:
    """Raises UsageError for an argument that is no such array."""
    wanted = NUMPY_NAMES.get(parameter.dtype, parameter.dtype)
    if not isinstance(arg, np.ndarray) or arg.ndim != parameter.rank or arg.dtype.name != wanted:
        given = f"{arg.dtype.name} of {arg.ndim} dimensions" if isinstance(arg, np.ndarray) else type(arg).__name__
        raise UsageError(f"{name}: the kernel takes {wanted} of {parameter.rank} dimensions, not {given}")


def _number(name: str, kind: Attribute, arg: Any) -> Any:
    if isinstance(kind, llvm.LLVMPointerType) or not isinstance(arg, int | float | np.number):
        raise UsageError(f"{name}: {type(arg).__name__} is no argument for {kind}")
    return kind_of(kind).filled([arg])
