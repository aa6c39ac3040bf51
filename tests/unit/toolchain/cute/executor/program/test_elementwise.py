"""Arithmetic thread by thread, against Python's own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, bf16, f16, f32, i1, i8, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.utils.test_value import create_ssa_value

from toolchain.cute.executor.program.elementwise import (
    BINARY,
    BITCASTS,
    FROM_UNSIGNED,
    SIGNED,
    TO_INTEGER,
    UNARY,
    function_of,
    select,
)
from toolchain.cute.nvvm.llvm_ops import CASTS, INT_OPS, INTRINSICS

WORDS = st.integers(-(2**31), 2**31 - 1)
FLOATS = st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False)


def applied(op: Operation, *values: object, dtype: type = np.int32) -> object:
    found = function_of(op)
    assert found is not None
    return found(*(np.array([value], dtype) for value in values))[0]


def two(kind: type[Operation], type_: Attribute = i32, **more: object) -> Operation:
    return kind(create_ssa_value(type_), create_ssa_value(type_), **more)  # pyright: ignore[reportCallIssue]


def wrapped(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


@given(WORDS, WORDS)
def test_integers_wrap_and_divide_as_c_does(a: int, b: int) -> None:
    assert applied(two(arith.AddiOp), a, b) == wrapped(a + b)
    assert applied(two(arith.MuliOp), a, b) == wrapped(a * b)
    if b:
        low, high = a % 2**32, b % 2**32
        assert applied(two(arith.DivUIOp), a, b) == wrapped(low // high)
        assert applied(two(arith.RemUIOp), a, b) == wrapped(low % high)
        quotient = wrapped(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
        if a != -(2**31):
            assert applied(two(arith.DivSIOp), a, b) == quotient
            assert applied(two(arith.RemSIOp), a, b) == a - quotient * b
    assert applied(two(arith.ShRUIOp), a, b % 32) == wrapped(a % 2**32 >> b % 32)
    assert applied(two(arith.ShRSIOp), a, b % 32) == a >> b % 32
    assert applied(two(arith.MinUIOp), a, b) == min((a, b), key=lambda x: x % 2**32)


@given(WORDS, WORDS)
def test_comparisons(a: int, b: int) -> None:
    for predicate, wanted in (("slt", a < b), ("ult", a % 2**32 < b % 2**32), ("uge", a % 2**32 >= b % 2**32),
                              ("eq", a == b), ("sge", a >= b)):  # fmt: skip
        assert applied(arith.CmpiOp(create_ssa_value(i32), create_ssa_value(i32), predicate), a, b) == wanted


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [("oeq", 0), ("ueq", 1), ("olt", 0), ("ult", 1), ("one", 0), ("une", 1), ("ord", 0), ("uno", 1)],
)
def test_comparisons_with_nan(predicate: str, wanted: int) -> None:
    op = arith.CmpfOp(create_ssa_value(f32), create_ssa_value(f32), predicate)
    assert applied(op, 1.0, np.nan, dtype=np.float32) == wanted


@given(FLOATS, FLOATS, FLOATS)
def test_fma_rounds_once(a: float, b: float, c: float) -> None:
    op = math.FmaOp(create_ssa_value(f32), create_ssa_value(f32), create_ssa_value(f32))
    got = Fraction(float(np.float64(applied(op, a, b, c, dtype=np.float32))))  # pyright: ignore[reportArgumentType]
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    near = [Fraction(float(np.nextafter(np.float32(got), np.float32(side)))) for side in (-np.inf, np.inf)]
    assert all(abs(got - exact) <= abs(other - exact) for other in near)


def test_conversions() -> None:
    byte, bit = create_ssa_value(i8), create_ssa_value(i1)
    assert applied(arith.ExtUIOp(byte, i32), -1, dtype=np.int8) == 255
    assert applied(arith.ExtSIOp(byte, i64), -1, dtype=np.int8) == -1
    assert applied(arith.ExtSIOp(bit, i32), True, dtype=np.bool_) == -1
    assert applied(arith.ExtUIOp(bit, i32), True, dtype=np.bool_) == 1
    assert applied(arith.TruncIOp(create_ssa_value(i32), i8), 0x1FF) == -1
    assert applied(arith.TruncIOp(create_ssa_value(i32), i1), 2) == 0
    assert applied(arith.UIToFPOp(create_ssa_value(i32), f32), -1) == np.float32(2**32 - 1)
    assert applied(arith.FPToSIOp(create_ssa_value(f32), i32), -2.7, dtype=np.float32) == -2
    assert applied(arith.BitcastOp(create_ssa_value(f32), i32), 1.0, dtype=np.float32) == 0x3F800000
    assert applied(arith.IndexCastOp(create_ssa_value(i32), i64), -5) == -5


def test_select_keeps_the_dtype() -> None:
    made = select(np.array([True, False]), np.array([1], np.int8), np.array([2], np.int8))
    assert made.dtype == np.int8 and made.tolist() == [1, 2]


def test_all_that_the_compiler_takes_is_computed() -> None:
    assert {*INT_OPS, *INTRINSICS} <= {*BINARY, *UNARY, math.FmaOp}
    assert set(CASTS) <= {*SIGNED, *FROM_UNSIGNED, *TO_INTEGER, *BITCASTS}


LONGS = st.integers(-(2**63), 2**63 - 1)


@given(LONGS, LONGS.filter(lambda b: b not in (0, -1)))
@example(-(2**63), 2)
def test_divisions_of_64_bits(a: int, b: int) -> None:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    assert applied(two(arith.DivSIOp, i64), a, b, dtype=np.int64) == quotient
    assert applied(two(arith.RemSIOp, i64), a, b, dtype=np.int64) == a - quotient * b


@pytest.mark.parametrize("dtype", [(np.float32, f32), (np.float16, f16), (ml_dtypes.bfloat16, bf16)])
def test_minus_zero_is_less_than_zero(dtype: tuple[type, Attribute]) -> None:
    zeros, type_ = np.array([[0.0, 0.0, -0.0, -0.0], [0.0, -0.0, 0.0, -0.0]], dtype[0]), dtype[1]
    for kind in (arith.MaximumfOp, arith.MaxnumfOp):
        assert np.signbit(made(kind, type_)(*zeros)).tolist() == [False, False, False, True]
    for kind in (arith.MinimumfOp, arith.MinnumfOp):
        assert np.signbit(made(kind, type_)(*zeros)).tolist() == [False, True, True, True]


def made(kind: type[Operation], type_: Attribute) -> Any:
    return function_of(two(kind, type_))


def test_numbers_of_one_bit_have_a_sign() -> None:
    ones, zeros = np.array([True]), np.array([False])
    assert not made(arith.AddiOp, i1)(ones, ones)[0]
    assert made(arith.SubiOp, i1)(zeros, ones)[0]
    assert made(arith.MinSIOp, i1)(zeros, ones)[0] and not made(arith.MaxSIOp, i1)(zeros, ones)[0]
    less = function_of(arith.CmpiOp(create_ssa_value(i1), create_ssa_value(i1), "slt"))
    assert less is not None and less(ones, zeros)[0] and not less(zeros, ones)[0]
    assert applied(arith.SIToFPOp(create_ssa_value(i1), f32), True, dtype=np.bool_) == -1.0
    assert applied(arith.UIToFPOp(create_ssa_value(i1), f32), True, dtype=np.bool_) == 1.0
    assert applied(arith.IndexCastOp(create_ssa_value(i1), IndexType()), True, dtype=np.bool_) == -1
