"""Literals and bits, both ways."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Attribute

from toolchain.tileir.dialect import types as t
from toolchain.tileir.dialect.attrs import DenseAttr
from toolchain.tileir.numbers import (
    dense_bytes,
    elements_of,
    float_bits,
    float_value,
    parse_number,
    spell_number,
    splat_bytes,
)


def token_kind(text: str) -> str:
    return "hex" if text.startswith("0x") else "float" if "." in text else "word" if text.isalpha() else "int"


@pytest.mark.parametrize("kind", list(t.SCALARS), ids=lambda k: t.SCALARS[k][0])
@given(data=st.data())
def test_bits_survive_being_spelled(kind: t.Attribute, data: st.DataObject) -> None:
    bits = data.draw(st.integers(0, (1 << t.SCALARS[kind][1]) - 1))
    spelled = spell_number(bits, kind)
    assert parse_number(spelled, token_kind(spelled), kind) == bits


@pytest.mark.parametrize(
    ("value", "kind", "bits"),
    [
        (1.0, t.f32, 0x3F800000),
        (0.1, t.bf16, 0x3DCD),
        (1.0009765625, t.tf32, 0x3F802000 >> 13),
        (1 + 2**-11, t.tf32, 0x3F800000 >> 13),  # a tie: to even
        (1 + 3 * 2**-11, t.tf32, 0x3F804000 >> 13),
        (-0.0, t.f16, 0x8000),
        (1e30, t.f16, 0x7C00),
        (448.0, t.f8e4m3fn, 0x7E),
        (1.0, t.f8e5m3fnu, 0x78),
        (2.0**-17, t.f8e5m3fnu, 0x01),
        (2.0**-18, t.f8e5m3fnu, 0x00),  # a tie: to even
        (1.0625, t.f8e5m3fnu, 0x78),
        (1.1875, t.f8e5m3fnu, 0x7A),
        (118784.0, t.f8e5m3fnu, 0xFE),
        (118785.0, t.f8e5m3fnu, 0xFF),
        (float("inf"), t.f8e5m3fnu, 0xFF),
    ],
)
def test_floats_round_to_nearest_even(value: float, kind: t.Attribute, bits: int) -> None:
    assert float_bits(value, kind) == bits


def test_spelling_is_decimal_where_that_is_exact() -> None:
    assert spell_number(0x3727C5AC, t.f32) == "1.000000e-05"
    assert spell_number(0x3727C5AD, t.f32) == "1.000000066e-05"
    assert spell_number(0x7FC00000, t.f32) == "0x7FC00000"
    assert spell_number(0xFFFFFFFB, t.i32) == "-5"
    assert spell_number(1, t.i1) == "true"


@pytest.mark.parametrize(
    ("text", "kind"),
    [("256", t.i8), ("-129", t.i8), ("1.5", t.i32), ("0x1FFFF", t.f16), ("x", t.f32), ("-1.0", t.f8e5m3fnu),
     ("9" * 5000, t.i32), ("1.0e400", t.f32), ("70000.0", t.f16), ("1000", t.f8e4m3fn), ("-1.0e400", t.f64),
     ("0.0", t.f8e8m0fnu), ("-1.0", t.f8e8m0fnu)],
)  # fmt: skip
def test_what_does_not_fit(text: str, kind: t.Attribute) -> None:
    with pytest.raises(ValueError):
        parse_number(text, token_kind(text), kind)


def test_a_scale_without_sign_or_infinity() -> None:
    value = [float_value(bits, t.f8e5m3fnu) for bits in range(255)]
    assert value == sorted(value) and value[0] == 0.0 and value[-1] == 1.75 * 2**16
    assert math.isnan(float_value(0xFF, t.f8e5m3fnu)) and spell_number(0xFF, t.f8e5m3fnu) == "0xFF"
    half = [float_value(bits << 7, t.f16) for bits in range(248)]  # the numbers below 2^16, with as many exponent bits
    assert value[:248] == half


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_few_packed_bits_are_no_splat(count: int) -> None:
    for number in range(1 << count):
        bits = [number >> i & 1 for i in range(count)]
        assert elements_of(DenseAttr(dense_bytes(bits, t.i1), t.TileType((count,), t.i1))) in (bits, bits[:1])
    mixed = DenseAttr(dense_bytes([1, 0, 1, 1], t.i1), t.TileType((4,), t.i1))
    assert elements_of(mixed) == [1, 0, 1, 1] and not mixed.is_splat


def test_packed_bits_and_splats() -> None:
    row = t.TileType((16,), t.i1)
    bits = [1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    assert elements_of(DenseAttr(dense_bytes(bits, t.i1), row)) == bits
    assert dense_bytes(bits, t.i1) == np.packbits(bits, bitorder="little").tobytes()
    assert splat_bytes(1, t.i1) == b"\xff"
    halves = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    packed = dense_bytes([int(v) for v in halves.view(np.uint16)], t.bf16)
    assert packed == halves.tobytes()


@pytest.mark.parametrize(("kind", "infinity"), [(t.f32, 0x7F800000), (t.bf16, 0x7F80), (t.f8e4m3fn, None)])
def test_a_float_that_is_too_large(kind: Attribute, infinity: int | None) -> None:
    with pytest.raises(ValueError, match="does not fit into"):
        parse_number("1.0e40", "float", kind)
    if infinity is not None:
        assert parse_number("1.0e40", "float", kind, overflows=True) == infinity
        return
    with pytest.raises(ValueError, match="does not fit into"):  # this type has no infinity
        parse_number("1.0e40", "float", kind, overflows=True)
