"""The types of a kernel's parameters."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float32Type, i32, i64

from toolchain.cute.executor.ptx.text import Parameter
from toolchain.cute.executor.ptx.types import given_types, types_of

PARAMETERS = [Parameter("a", "u64", True), Parameter("b", "u32"), Parameter("c", "f32"), Parameter("d", "b8", size=128),
              Parameter("e", "u64")]  # fmt: skip


def test_a_pointer_is_what_the_text_calls_one_or_what_gets_an_array() -> None:
    pointer = llvm.LLVMPointerType()
    types = types_of(PARAMETERS)
    assert types == [pointer, i32, Float32Type(), pointer, i64]
    array = np.zeros(1)
    assert given_types(types, [array, 1, 1.0, array, array])[-1] == pointer
    assert given_types(types, [array, 1, 1.0, array, 5])[-1] == i64
    assert given_types(types, [array]) == types
