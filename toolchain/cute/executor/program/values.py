"""Values of registers as numpy arrays: the dtype of each type, bytes, and constants.

A value has one row for each thread of a warp, or one row where all have the same; a vector has a second axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute

from ..state.block import WARP, Array
from ..state.findings import NoSemantics

_INTEGERS: dict[int, Any] = {1: np.bool_, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_FLOATS: dict[type[Attribute], Any] = {
    BFloat16Type: ml_dtypes.bfloat16, Float16Type: np.float16, Float32Type: np.float32, Float64Type: np.float64,
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """`count`: elements of a vector, 0 for a scalar."""

    dtype: np.dtype[Any]
    count: int = 0

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize * max(self.count, 1)

    def from_bytes(self, data: NDArray[np.uint8]) -> Array:
        """A value from bytes (32, bytes)."""
        made = np.ascontiguousarray(data).view(self.dtype)
        return made if self.count else made[:, 0]

    def to_bytes(self, value: Array) -> NDArray[np.uint8]:
        """The bytes (32, bytes) of a value."""
        wide = np.ascontiguousarray(value if self.count else value[:, None])
        made = wide.view(np.uint8)
        return np.broadcast_to(made, (WARP, self.bytes)) if len(made) == 1 else made

    def filled(self, items: list[Any]) -> Array:
        """A constant."""
        made = np.array(items).astype(self.dtype)
        return made[None, :] if self.count else made


def kind_of(type_: Attribute) -> Kind:
    """Raises NoSemantics for a type that no register has here."""
    match type_:
        case IntegerType() if type_.width.data in _INTEGERS:
            return Kind(np.dtype(_INTEGERS[type_.width.data]))
        case IndexType():
            return Kind(np.dtype(np.int32))
        case llvm.LLVMPointerType():
            return Kind(np.dtype(np.int64))
        case VectorType() if len(type_.get_shape()) == 1:
            return Kind(kind_of(type_.get_element_type()).dtype, type_.get_shape()[0])
        case _ if type(type_) in _FLOATS:
            return Kind(np.dtype(_FLOATS[type(type_)]))
        case _:
            raise NoSemantics(f"the executor has no registers of type {type_}")


def size_of(type_: Attribute) -> int:
    """Bytes in memory."""
    if isinstance(type_, llvm.LLVMArrayType):
        return type_.size.data * size_of(type_.type)
    return kind_of(type_).bytes


def space_of(type_: Attribute) -> int:
    """The address space of a pointer."""
    match getattr(type_, "addr_space", None):
        case IntAttr() as number:
            return number.data
        case IntegerAttr() as number:
            return number.value.data
        case _:
            return 0


def constant(value: Attribute, type_: Attribute) -> Array:
    """A constant as a value."""
    kind = kind_of(type_)
    match value:
        case IntegerAttr():
            return kind.filled([value.value.data])
        case FloatAttr():
            return kind.filled([value.value.data])
        case DenseIntOrFPElementsAttr():
            return kind.filled(list(value.get_values()))
        case _:
            raise NoSemantics(f"the executor has no constant {value}")
