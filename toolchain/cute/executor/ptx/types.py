"""The types of a kernel's parameters, as the launch of the executor takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, i64
from xdsl.ir import Attribute

from .text import BITS, Parameter


def types_of(parameters: Sequence[Parameter]) -> list[Attribute]:
    """A pointer, a number, or for bytes a pointer, which stands for a tensor map."""
    return [_type(parameter) for parameter in parameters]


def _type(parameter: Parameter) -> Attribute:
    if parameter.pointer or parameter.size:
        return llvm.LLVMPointerType()
    return {"f32": Float32Type(), "f64": Float64Type()}.get(parameter.type, IntegerType(BITS[parameter.type]))


def given_types(types: Sequence[Attribute], args: Sequence[Any]) -> list[Attribute]:
    """A word of 64 bits that gets an array is a pointer, also where the text does not say so."""
    pointers = [isinstance(arg, np.ndarray) and kind == i64 for kind, arg in zip(types, args, strict=False)]
    found = [llvm.LLVMPointerType() if pointer else kind for kind, pointer in zip(types, pointers, strict=False)]
    return [*found, *types[len(found) :]]
