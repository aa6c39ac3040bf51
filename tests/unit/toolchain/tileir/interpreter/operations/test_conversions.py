"""Conversions between element types."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from toolchain.errors import SanitizerError, UsageError
from toolchain.tileir.dialect import types

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("nearest_even", [1.0, 1.015625, 1.0078125, -1.0, 1.0]),
        ("zero", [1.0, 1.0078125, 1.0, -1.0, 1.0]),
        ("negative_inf", [1.0, 1.0078125, 1.0, -1.0078125, 1.0]),
        ("positive_inf", [1.0078125, 1.015625, 1.0078125, -1.0, 1.0]),
    ],
)
def test_f32_to_bf16_by_mode(elementwise: Any, mode: str, expected: list[float]) -> None:
    ulp = 2.0**-7
    x = np.array([1 + ulp / 2, 1 + 1.5 * ulp, 1 + 0.75 * ulp, -1 - ulp / 4, 1, 1, 1, 1], np.float32)
    assert elementwise("ftof", x, dtype=BF16, rounding_mode=mode)[:5].tolist() == expected


def test_f64_to_bf16_rounds_once(elementwise: Any) -> None:
    just_above_a_tie = np.array([1 + 2.0**-8 + 2.0**-40] * 2)
    assert elementwise("ftof", just_above_a_tie, dtype=BF16, rounding_mode="nearest_even").tolist() == [1.0078125] * 2


def test_widening_is_exact(elementwise: Any) -> None:
    x = np.array([1.5, -0.0, np.inf, 448.0], ml_dtypes.float8_e5m2)
    wide = elementwise("ftof", x, dtype=np.float32, rounding_mode="nearest_even")
    assert wide.tolist() == [1.5, 0, np.inf, 448] and np.signbit(wide[1])
    assert elementwise("ftof", wide, dtype=np.float64, rounding_mode="nearest_even").tolist() == wide.tolist()


def test_tf32_keeps_ten_bits_of_mantissa(builder: Any) -> None:
    x = np.array([1 + 2.0**-10, 1 + 2.0**-11, 1 + 3 * 2.0**-11, np.nan], np.float32)
    out = np.zeros(4, np.float32)
    k = builder(types.PtrType(types.f32), types.PtrType(types.f32))
    value = k.load(k.view(k.args[0], (4,), (4,)), 0)[0]
    narrow = k.op("ftof", value, out=[types.TileType((4,), types.tf32)], rounding_mode="nearest_even")
    wide = k.op("ftof", narrow, out=[types.TileType((4,), types.f32)], rounding_mode="nearest_even")
    k.store(k.view(k.args[1], (4,), (4,)), wide, 0)
    k.run(x, out)
    assert out[:3].tolist() == [1 + 2.0**-10, 1.0, 1 + 2.0**-9] and np.isnan(out[3])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("nearest_int_to_zero", [2, -2, 3, -3, 0, 127, -128, 0]),
        ("negative_inf", [2, -3, 3, -4, -1, 127, -128, 0]),
        ("positive_inf", [3, -2, 4, -3, 0, 127, -128, 0]),
        ("nearest_even", [2, -2, 4, -4, 0, 127, -128, 0]),
        ("nearest_away", [3, -3, 4, -4, 0, 127, -128, 0]),
    ],
)
def test_float_to_signed(elementwise: Any, mode: str, expected: list[int]) -> None:
    x = np.array([2.5, -2.5, 3.5, -3.5, -0.25, 1e9, -1e9, np.nan], np.float32)
    fields = {"dtype": np.int8, "signedness": "signed", "rounding_mode": mode}
    assert elementwise("ftoi", x, saturating=None, **fields).tolist() == expected
    assert elementwise("ftoi", x[:4], **fields).tolist() == expected[:4]


def test_float_to_wide_integers_clamps_exactly(elementwise: Any) -> None:
    x = np.array([2.0**63, -(2.0**63), 2.0**64, -5.0], np.float64)
    to = {"rounding_mode": "nearest_int_to_zero", "dtype": np.int64, "saturating": None}
    assert elementwise("ftoi", x, signedness="signed", **to).tolist() == [2**63 - 1, -(2**63), 2**63 - 1, -5]
    unsigned = elementwise("ftoi", x, signedness="unsigned", **to).view(np.uint64)
    assert unsigned.tolist() == [2**63, 0, 2**64 - 1, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, BF16, np.float64])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
def test_integer_to_float_rounds_once(elementwise: Any, bits: int, dtype: Any, signedness: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), 64, f"i{bits // 8}")
    if bits == 8:
        x = np.arange(-128, 128).astype(np.int8)
    if bits == 64:  # between two f64, and a hair above a tie of bf16
        x[:2] = [2**62 + 2**54 + 1, (1 << 62) + (1 << 8) + 1]
    got = elementwise("itof", x, dtype=dtype, signedness=signedness, rounding_mode="nearest_even").astype(np.float64)
    precision = {"e": 11, "f": 24, "d": 53}.get(np.dtype(dtype).char, 8)
    for value, result in zip(x.tolist(), got, strict=True):
        exact = value if signedness == "signed" else value % (1 << bits)
        if dtype is np.float16 and abs(exact) >= 65520:  # rounds beyond its largest number
            assert np.isinf(result)
            continue
        quantum = Fraction(2) ** max(0, exact.bit_length() - precision)
        assert Fraction(float(result)) == round(exact / quantum) * quantum


def test_extension_and_truncation(elementwise: Any) -> None:
    x = np.array([-1, 127, -128, 5], np.int8)
    assert elementwise("exti", x, dtype=np.int32, signedness="signed").tolist() == x.tolist()
    assert elementwise("exti", x, dtype=np.int32, signedness="unsigned").tolist() == [255, 127, 128, 5]
    flags = np.array([True, False])
    assert elementwise("exti", flags, dtype=np.int64, signedness="signed").tolist() == [-1, 0]
    assert elementwise("exti", flags, dtype=np.int64, signedness="unsigned").tolist() == [1, 0]
    wide = np.array([0x1FF, -1, 0x180, 2], np.int32)
    assert elementwise("trunci", wide, dtype=np.int8, overflow="none").tolist() == [-1, -1, -128, 2]
    assert elementwise("trunci", wide, dtype=np.bool_, overflow="none").tolist() == [True, True, False, False]


def test_bitcast_keeps_the_bits(elementwise: Any) -> None:
    x = np.array([1.0, -0.0, 0.1, 2.0**-130], np.float32)
    assert elementwise("bitcast", x, dtype=np.int32).tolist() == x.view(np.int32).tolist()
    half = np.array([0x3C00, 0x8001, 0x7BFF, 0x0000], np.uint16).view(np.int16)
    assert np.array_equal(elementwise("bitcast", half, dtype=np.float16), half.view(np.float16))
    assert np.array_equal(elementwise("bitcast", half, dtype=BF16).view(np.int16), half)


@pytest.mark.parametrize(
    ("signedness", "expected"), [("signed", [127, -128, 127, -128, 0, -2]), ("unsigned", [-1, 0, -1, 0, 0, 0])]
)
def test_saturating_conversion_takes_every_float(elementwise: Any, signedness: str, expected: list[int]) -> None:
    x = np.array([1e9, -1e9, np.inf, -np.inf, np.nan, -2.5], np.float32)
    x = np.concatenate((x, np.zeros(2, np.float32)))
    fields = {"dtype": np.int8, "signedness": signedness, "rounding_mode": "nearest_int_to_zero"}
    assert elementwise("ftoi", x, saturating=None, **fields).tolist() == [*expected, 0, 0]


TO_ZERO = {"rounding_mode": "nearest_int_to_zero"}


@pytest.mark.parametrize("fields", [{}, {"saturating": None}])
@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
@pytest.mark.parametrize("source", [np.float16, BF16, np.float32, np.float64, ml_dtypes.float8_e5m2, E4M3])
def test_a_float_as_a_boolean_is_whether_it_differs_from_zero(
    elementwise: Any, source: Any, signedness: str, fields: dict[str, None]
) -> None:
    """tileiras compares bits for it, so that all of it is defined: NaN is true, and of 8 bits -0 too."""
    x = np.array([0, -0.0, 0.5, -0.5, 1, -2.5, np.inf, np.nan], source)
    expected = [False, source in (E4M3, ml_dtypes.float8_e5m2)] + [True] * 6
    assert elementwise("ftoi", x, dtype=np.bool_, signedness=signedness, **TO_ZERO, **fields).tolist() == expected


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
def test_what_no_integer_holds_is_undefined(elementwise: Any, source: str, bits: int, signedness: str) -> None:
    """The largest and smallest numbers that still fit do not trap, the next ones of the float's type do."""
    dtype = BF16 if source == "bfloat16" else np.dtype(source)
    digits, largest = ml_dtypes.finfo(dtype).nmant + 1, float(ml_dtypes.finfo(dtype).max)
    signed = signedness == "signed"
    high = 2.0 ** (bits - 1 if signed else bits)
    top = min(high - max(1.0, high * 2.0**-digits), largest)
    bottom, below = (-high, -high - max(1.0, high * 2.0 ** (1 - digits))) if signed else (-0.75, -1.0)
    bottom = max(bottom, -largest)
    fields = {"dtype": np.dtype(f"i{bits // 8}"), "signedness": signedness, **TO_ZERO}
    held = elementwise("ftoi", np.array([top, bottom], dtype), **fields)
    assert held.view(held.dtype if signed else f"u{bits // 8}").tolist() == [int(top), int(bottom)]
    for value in (np.nan, np.inf, -np.inf, *(x for x in (high, below) if abs(x) <= largest)):
        words = r"k: ftoi at kernel\.mlir:\d+:3.* converted to an? (un)?signed i\d+, which cannot hold it"
        with pytest.raises(SanitizerError, match=words):
            elementwise("ftoi", np.array([0, value], dtype), **fields)


@pytest.mark.parametrize(
    ("source", "bits", "signedness", "expected"),
    [
        (np.float32, 8, "signed", [-1, 0, 0, 44, -128]),  # 32767, -32768, NaN, 300, 128 by their lowest 8 bits
        (np.float32, 8, "unsigned", [-1, 0, 0, 44, -128]),  # 65535, 0, ...
        (np.float32, 16, "signed", [2**15 - 1, -(2**15), 0, 300, 128]),
        (np.float32, 32, "unsigned", [-1, 0, 0, 300, 128]),
        (BF16, 32, "signed", [2**31 - 1, -(2**31), 0, 300, 128]),
        (np.float32, 64, "signed", [2**63 - 1, -(2**63), -(2**63), 300, 128]),
        (np.float64, 8, "signed", [-1, 0, 0, 44, -128]),
        (np.float64, 32, "unsigned", [-1, 0, -(2**31), 300, 128]),
    ],
)
def test_undefined_conversions_give_what_the_gpus_instructions_do(
    elementwise: Any, source: Any, bits: int, signedness: str, expected: list[int]
) -> None:
    x = np.array([1e30, -1e30, np.nan, 300, 128, 0, 0, 0], source)
    fields = {"dtype": np.dtype(f"i{bits // 8}"), "signedness": signedness, **TO_ZERO}
    assert elementwise("ftoi", x, sanitize=False, **fields).tolist() == [*expected, 0, 0, 0]


def test_an_unspecified_element_may_be_what_no_integer_holds(builder: Any) -> None:
    """Beyond the end of the tensor there are NaNs, which are not stored."""
    x, out = np.array([1, 2, 3], np.float32), np.zeros(3, np.int32)
    k = builder(types.PtrType(types.f32), types.PtrType(types.i32))
    value = k.load(k.view(k.args[0], (3,), (4,), padding=None), 0)[0]
    whole = k.op("ftoi", value, out=[types.TileType((4,), types.i32)], signedness="signed", **TO_ZERO)
    k.store(k.view(k.args[1], (3,), (4,)), whole, 0)
    k.run(x, out)
    assert out.tolist() == [1, 2, 3]


@pytest.mark.parametrize("source", [np.float16, BF16, np.float32, np.float64])
@pytest.mark.parametrize(("target", "largest"), [(ml_dtypes.float8_e4m3fn, 448), (ml_dtypes.float8_e5m2, 57344)])
def test_conversion_to_8_bits_saturates(elementwise: Any, source: Any, target: Any, largest: float) -> None:
    """The GPU's only instruction for it, F2FP.SATFINITE, does the same."""
    x = np.array([largest, largest * 1.125, np.inf, -np.inf, np.nan, 1.5, -0.0, 2.0**-20], source)
    got = elementwise("ftof", x, dtype=target, rounding_mode="nearest_even").astype(np.float64)
    assert got[:4].tolist() == [largest, largest, largest, -largest] and np.isnan(got[4])
    assert got[5:].tolist() == [1.5, -0.0, 0] and np.signbit(got[6])


@pytest.mark.parametrize(("mode", "expected"), [("zero", [1, 1, 2, 2.0**127]), ("positive_inf", [1, 2, 4, 2.0**127])])
def test_a_float_as_a_scale(elementwise: Any, mode: str, expected: list[float]) -> None:
    """A power of two of the magnitude; what is out of its range saturates."""
    scale = ml_dtypes.float8_e8m0fnu
    x = np.array([1, 1.25, -3, np.inf, 0, 2.0**-140, np.nan, -1], np.float32)
    got = elementwise("ftof", x, dtype=scale, rounding_mode=mode).astype(np.float64)
    assert got[:6].tolist() == [*expected, 2.0**-127, 2.0**-127] and np.isnan(got[6]) and got[7] == 1


@pytest.mark.parametrize(("name", "fields"), [("ftof", {}), ("itof", {"signedness": "signed"})])
def test_conversions_to_scales_that_there_are_not(elementwise: Any, name: str, fields: dict[str, str]) -> None:
    x = np.ones(2, np.float32 if name == "ftof" else np.int32)
    with pytest.raises(UsageError, match="f8E8M0FNU"):
        elementwise(name, x, dtype=ml_dtypes.float8_e8m0fnu, rounding_mode="nearest_even", **fields)


@pytest.mark.parametrize("mode", ["zero", "negative_inf", "positive_inf"])
def test_f64_made_of_f32_by_a_directed_mode_is_f64(builder: Any, mode: str) -> None:
    x, out = np.array([1.1, -2.3], np.float32), np.zeros(2)
    k = builder(types.PtrType(types.f32), types.PtrType(types.f64))
    wide = types.TileType((2,), types.f64)
    value = k.op("ftof", k.load(k.view(k.args[0], (2,), (2,)), 0)[0], out=[wide], rounding_mode=mode)
    k.store(k.view(k.args[1], (2,), (2,)), k.op("mulf", value, value, out=[wide], rounding_mode="nearest_even"), 0)
    k.run(x, out)
    assert out.tolist() == (x.astype(np.float64) ** 2).tolist()
