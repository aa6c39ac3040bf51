"""Values of registers: types, bytes and constants."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
    bf16,
    f16,
    f32,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute

from toolchain.cute.executor import NoSemantics
from toolchain.cute.executor.program.values import constant, kind_of, size_of, space_of

POINTER = llvm.LLVMPointerType(IntAttr(3))


@pytest.mark.parametrize(
    ("type_", "dtype", "count", "bytes_"),
    [
        (i1, np.bool_, 0, 1), (i8, np.int8, 0, 1), (i64, np.int64, 0, 8), (IndexType(), np.int32, 0, 4),
        (f16, np.float16, 0, 2), (bf16, ml_dtypes.bfloat16, 0, 2), (POINTER, np.int64, 0, 8),
        (VectorType(f32, [4]), np.float32, 4, 16), (VectorType(i8, [1]), np.int8, 1, 1),
    ],
)  # fmt: skip
def test_types(type_: Attribute, dtype: type, count: int, bytes_: int) -> None:
    kind = kind_of(type_)
    assert (kind.dtype, kind.count, kind.bytes) == (np.dtype(dtype), count, bytes_)


@pytest.mark.parametrize("type_", [IntegerType(4), VectorType(f32, [2, 2])])
def test_a_type_that_no_register_has(type_: Attribute) -> None:
    with pytest.raises(NoSemantics, match="no registers of type"):
        kind_of(type_)


@pytest.mark.parametrize("type_", [i8, bf16, f32, i64, VectorType(f16, [4]), VectorType(i32, [1])])
def test_bytes_and_values_are_the_same(type_: Attribute) -> None:
    kind = kind_of(type_)
    data = np.random.default_rng(0).integers(0, 64, (32, kind.bytes), np.uint8)
    value = kind.from_bytes(data)
    assert value.shape == ((32, kind.count) if kind.count else (32,))
    assert (kind.to_bytes(value) == data).all()
    assert (kind.to_bytes(value[:1]) == data[:1]).all() and len(kind.to_bytes(value[:1])) == 32


@given(st.integers(-128, 255))
def test_a_constant_wraps_into_its_bits(number: int) -> None:
    found = int(constant(IntegerAttr(number, i8), i8)[0])
    assert -128 <= found < 128 and (found - number) % 256 == 0


def test_constants() -> None:
    assert constant(IntegerAttr(1, i1), i1).tolist() == [True]
    assert constant(FloatAttr(0.1, f32), f32).tolist() == [np.float32(0.1)]
    pair = VectorType(i32, [2])
    assert constant(DenseIntOrFPElementsAttr.from_list(pair, [3, 5]), pair).tolist() == [[3, 5]]
    assert constant(DenseIntOrFPElementsAttr.from_list(pair, [3]), pair).tolist() == [[3, 3]]
    with pytest.raises(NoSemantics, match="no constant"):
        constant(i32, i32)


def test_sizes_and_address_spaces() -> None:
    inner = llvm.LLVMArrayType(IntAttr(3), f16)
    assert size_of(llvm.LLVMArrayType(IntAttr(5), inner)) == 30
    assert space_of(POINTER) == 3 and space_of(llvm.LLVMPointerType()) == 0
