"""Types, constants and symbols of LLVM IR text, from MLIR's."""

from __future__ import annotations

import functools
import struct

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

INDEX_BITS = 32  # of `index`: offsets of a tile are 32-bit on a GPU, and addresses are computed by getelementptr
FLOATS: dict[type[Attribute], str] = {
    BFloat16Type: "bfloat",
    Float16Type: "half",
    Float32Type: "float",
    Float64Type: "double",
}


class UnsupportedError(Exception):
    """An operation, a type or an attribute that has no form in LLVM IR here."""


@functools.cache
def type_text(type_: Attribute) -> str:
    """A type as LLVM IR writes it: `!llvm.ptr<3>` is `ptr addrspace(3)`. Raises UnsupportedError."""
    match type_:
        case IntegerType():
            return f"i{type_.width.data}"
        case IndexType():
            return f"i{INDEX_BITS}"
        case llvm.LLVMPointerType():
            number = _space(type_.addr_space)
            return f"ptr addrspace({number})" if number else "ptr"
        case llvm.LLVMArrayType():
            return f"[{type_.size.data} x {type_text(type_.type)}]"
        case llvm.LLVMStructType():
            return "{ " + ", ".join(map(type_text, type_.types.data)) + " }"
        case llvm.LLVMVoidType():
            return "void"
        case VectorType():
            sizes = type_.get_shape()
            if len(sizes) != 1:
                raise UnsupportedError(f"{type_}: LLVM IR has vectors of one dimension only")
            return f"<{sizes[0]} x {type_text(type_.element_type)}>"
        case _:
            if (name := FLOATS.get(type(type_))) is None:
                raise UnsupportedError(f"{type_} has no type in LLVM IR")
            return name


def _space(written: Attribute) -> int:
    match written:
        case IntAttr():
            return written.data
        case IntegerAttr():
            return written.value.data
        case _:
            return 0


def constant_text(value: Attribute, type_: Attribute) -> str:
    """A constant without its type. Floats are written as bits, so that nothing is rounded. Raises UnsupportedError."""
    match value:
        case IntegerAttr():
            if isinstance(type_, IntegerType) and type_.width.data == 1:
                return "true" if value.value.data else "false"
            return str(value.value.data)
        case FloatAttr():
            return float_text(value.value.data, type_)
        case DenseIntOrFPElementsAttr():
            items = [constant_text(item, value.get_element_type()) for item in value.iter_attrs()]
            written = type_text(value.get_element_type())
            return "<" + ", ".join(f"{written} {item}" for item in items) + ">"
        case _:
            raise UnsupportedError(f"{value} is no constant of LLVM IR")


def float_text(value: float, type_: Attribute) -> str:
    """A float in LLVM's hexadecimal forms. An f32 is written as the double of the same value."""
    match type_:
        case Float16Type():
            return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
        case BFloat16Type():
            bits = struct.unpack("<I", struct.pack("<f", value))[0]
            return f"0xR{bits >> 16:04X}"
        case Float32Type():
            value = struct.unpack("<f", struct.pack("<f", value))[0]
            return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        case _:
            return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


@functools.cache
def quoted(text: str) -> str:
    """A string of LLVM IR: quotes, backslashes and control characters as two hexadecimal digits."""
    safe = "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\{ord(c):02X}" for c in text)
    return f'"{safe}"'
