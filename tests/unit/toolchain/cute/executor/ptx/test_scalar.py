"""What instructions from registers to registers compute, beside Python's own numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from toolchain.cute.executor.ptx.scalar import scalar

A, B = np.array([7, -7, 2**31 - 1, -(2**31), 0], np.int32), np.array([3, 3, 2, -1, 5], np.int32)
UA, UB = (one.astype(np.int64) % 2**32 for one in (A, B))


def done(opcode: str, *values: Any) -> Any:
    found = scalar(opcode)
    assert found is not None, opcode
    return found.function(*values)


@pytest.mark.parametrize(
    ("opcode", "wanted"),
    [
        ("add.s32", A.astype(np.int64) + B),
        ("sub.u32", A.astype(np.int64) - B),
        ("mul.lo.s32", A.astype(np.int64) * B),
        ("mul.hi.s32", A.astype(np.int64) * B >> 32),
        ("mul.hi.u32", (UA.astype(object) * UB) // 2**32),
        ("min.u32", np.minimum(UA, UB)),
        ("max.s32", np.maximum(A, B)),
        ("div.u32", UA // UB),
        ("rem.u32", UA % UB),
        ("and.b32", A & B),
        ("xor.b32", A ^ B),
        ("shl.b32", [56, -56, -4, 0, 0]),
        ("shr.u32", [0, 536870911, 536870911, 0, 0]),
        ("shr.s32", [0, -1, 536870911, -1, 0]),
        ("setp.lt.s32", A < B),
        ("setp.lt.u32", UA < UB),
        ("setp.hs.u32", UA >= UB),
    ],
)
def test_integers(opcode: str, wanted: Any) -> None:
    made = done(opcode, A, B)
    wanted = np.array([int(each) for each in wanted])
    assert (made.astype(np.int64) == (wanted if made.dtype == np.bool_ else (wanted + 2**31) % 2**32 - 2**31)).all()


def test_integers_of_three_operands_and_wide_ones() -> None:
    assert (done("mul.wide.s32", A, B) == A.astype(np.int64) * B).all()
    assert (done("mul.wide.u32", A, B).view(np.uint64) == UA.astype(np.uint64) * UB.astype(np.uint64)).all()
    assert (done("mad.lo.s32", A, B, A) == A * B + A).all()
    fields = np.array([0xABCD] * 3, np.int32), np.array([4, 0, 28], np.int32), np.array([8, 0, 8], np.int32)
    assert list(done("bfe.u32", *fields)) == [0xBC, 0, 0]
    assert list(done("bfe.s32", *fields)) == [0xBC - 256, 0, 0]


@pytest.mark.parametrize(
    ("opcode", "value", "wanted"),
    [
        ("cvt.u64.u32", np.int32(-1), 2**32 - 1),
        ("cvt.s64.s32", np.int32(-1), -1),
        ("cvt.u32.u64", np.int64(2**32 + 5), 5),
        ("cvt.u16.u32", np.int32(0x12345), 0x2345),
        ("cvt.rn.f32.s32", np.int32(2**24 + 1), 2.0**24),
        ("cvt.rzi.s32.f32", np.float32(-2.7), -2),
        ("cvt.rni.s32.f32", np.float32(2.5), 2),
        ("cvt.rzi.s32.f32", np.float32(1e20), 2**31 - 1),
        ("cvt.rzi.u32.f32", np.float32(-5), 0),
        ("cvt.rzi.s32.f32", np.float32("nan"), 0),
        ("cvt.f32.f16", np.float16(1.5), 1.5),
        ("cvt.rn.bf16.f32", np.float32(1 + 2**-8), 1.0),
        ("neg.s32", np.int32(5), -5),
        ("not.b32", np.int32(5), -6),
    ],
)
def test_conversions(opcode: str, value: Any, wanted: float) -> None:
    assert float(done(opcode, np.array([value]))[0]) == wanted


def test_floats() -> None:
    x, y = np.array([1.5, -0.0, np.nan, np.inf], np.float32), np.array([2, 0, 1, 1], np.float32)
    assert done("add.rn.f32", x, y)[0] == np.float32(3.5)
    assert list(done("max.f32", x, y)) == [2, 0, 1, np.inf] and not np.signbit(done("max.f32", x, y)[1])
    assert np.isnan(done("max.NaN.f32", x, y)[2])
    assert list(done("setp.lt.f32", x, y)) == [True, False, False, False]
    assert list(done("setp.ltu.f32", x, y)) == [True, False, True, False]
    assert list(done("setp.neu.f32", x, y)) == [True, False, True, True]
    assert list(done("setp.nan.f32", x, y)) == [False, False, True, False]
    assert list(done("setp.lt.and.f32", x, y, np.array([False]))) == [False] * 4
    assert list(done("selp.f32", x, y, np.array([True, False, False, True]))) == [1.5, 0, 1, np.inf]
    one = np.array([1 + 2**-12], np.float32)
    assert done("fma.rn.f32", one, one, -np.array([1 + 2**-11], np.float32))[0] == np.float32(2**-24)  # rounded once
    half = np.array([2049], np.float16)
    assert done("add.rn.f16", half, np.array([1], np.float16)).dtype == np.float16
    assert (
        done("mul.rn.bf16", one.astype(ml_dtypes.bfloat16), one.astype(ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16
    )


@pytest.mark.parametrize(
    "opcode",
    [
        "add.rz.f32",
        "add.ftz.f32",
        "add.sat.s32",
        "mul.f128",
        "cvt.rz.f16.f32",
        "cvt.sat.u8.s32",
        "setp.lt.xor.and.s32",
        "min.b32",
        "fma.rn.f64",
        "lop3.b32",
        "cvt.u32",
        "setp.lo.f32",
        "div.full.f32",
    ],
)
def test_a_form_that_it_does_not_know_is_none(opcode: str) -> None:
    assert scalar(opcode) is None
