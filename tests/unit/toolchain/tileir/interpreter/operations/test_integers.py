"""Integer ops against Python's exact integers, on every width, as tiles and as scalars."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

WIDTHS = [8, 16, 32, 64]


def samples(bits: int, *, zero: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of telling values, 64 of them."""
    top = 1 << (bits - 1)
    values = [0 if zero else 5, 1, -1, 2, -7, top - 1, -top, top // 3]
    pairs = np.array(list(itertools.product(values, values)), f"i{bits // 8}")
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def wrapped(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def natural(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def model(function: Callable[[int, int], int], a: np.ndarray, b: np.ndarray, bits: int) -> list[int]:
    return [wrapped(function(int(x), int(y)), bits) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(
    ("name", "function", "fields"),
    [
        ("addi", operator.add, {"overflow": "none"}),
        ("subi", operator.sub, {"overflow": "none"}),
        ("muli", operator.mul, {"overflow": "none"}),
        ("andi", operator.and_, {}),
        ("ori", operator.or_, {}),
        ("xori", operator.xor, {}),
        ("maxi", max, {"signedness": "signed"}),
        ("mini", min, {"signedness": "signed"}),
    ],
)
def test_wrap_around(elementwise: Any, name: str, function: Any, fields: Any, bits: int) -> None:
    a, b = samples(bits)
    assert elementwise(name, a, b, **fields).tolist() == model(function, a, b, bits)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(("name", "function"), [("maxi", max), ("mini", min)])
def test_unsigned_extremum(elementwise: Any, name: str, function: Any, bits: int) -> None:
    a, b = samples(bits)
    expected = model(lambda x, y: function(natural(x, bits), natural(y, bits)), a, b, bits)
    assert elementwise(name, a, b, signedness="unsigned").tolist() == expected


def truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(
    ("rounding", "divide"),
    [("zero", truncated), ("negative_inf", lambda x, y: x // y), ("positive_inf", lambda x, y: -(-x // y))],
)
def test_signed_division(elementwise: Any, bits: int, rounding: str, divide: Any) -> None:
    a, b = samples(bits, zero=False)
    keep = (a != -(1 << (bits - 1))) | (b != -1)
    a, b = np.where(keep, a, 3).astype(a.dtype), np.where(keep, b, 2).astype(a.dtype)
    result = elementwise("divi", a, b, signedness="signed", rounding=rounding)
    assert result.tolist() == model(divide, a, b, bits)
    if rounding == "zero":
        rest = elementwise("remi", a, b, signedness="signed")
        assert rest.tolist() == model(lambda x, y: x - truncated(x, y) * y, a, b, bits)


@pytest.mark.parametrize("bits", WIDTHS)
def test_unsigned_division(elementwise: Any, bits: int) -> None:
    a, b = samples(bits, zero=False)
    fields = {"signedness": "unsigned"}

    def expect(function: Any) -> list[int]:
        return model(lambda x, y: function(natural(x, bits), natural(y, bits)), a, b, bits)

    assert elementwise("divi", a, b, rounding="zero", **fields).tolist() == expect(operator.floordiv)
    assert elementwise("divi", a, b, rounding="positive_inf", **fields).tolist() == expect(lambda x, y: -(-x // y))
    assert elementwise("remi", a, b, **fields).tolist() == expect(operator.mod)


@pytest.mark.parametrize("bits", WIDTHS)
def test_high_half_of_a_product_is_unsigned(elementwise: Any, bits: int) -> None:
    a, b = samples(bits)
    expected = model(lambda x, y: natural(x, bits) * natural(y, bits) >> bits, a, b, bits)
    assert elementwise("mulhii", a, b).tolist() == expected


@pytest.mark.parametrize("bits", WIDTHS)
def test_shifts(elementwise: Any, bits: int) -> None:
    a = samples(bits)[0]
    b = (np.arange(64) % bits).astype(a.dtype)
    assert elementwise("shli", a, b, overflow="none").tolist() == model(operator.lshift, a, b, bits)
    assert elementwise("shri", a, b, signedness="signed").tolist() == model(operator.rshift, a, b, bits)
    logical = model(lambda x, y: natural(x, bits) >> y, a, b, bits)
    assert elementwise("shri", a, b, signedness="unsigned").tolist() == logical


@pytest.mark.parametrize("bits", WIDTHS)
def test_negation_and_absolute_value_wrap_at_the_smallest(elementwise: Any, bits: int) -> None:
    a = samples(bits)[0]
    assert elementwise("negi", a, overflow="none").tolist() == [wrapped(-int(x), bits) for x in a]
    assert elementwise("absi", a).tolist() == [wrapped(abs(int(x)), bits) for x in a]


COMPARISONS = {
    "equal": operator.eq, "not_equal": operator.ne, "less_than": operator.lt, "less_than_or_equal": operator.le,
    "greater_than": operator.gt, "greater_than_or_equal": operator.ge,
}  # fmt: skip


@pytest.mark.parametrize("predicate", COMPARISONS)
@pytest.mark.parametrize("bits", [8, 64])
def test_comparison(elementwise: Any, bits: int, predicate: str) -> None:
    a, b = samples(bits)
    compare = COMPARISONS[predicate]
    fields = {"comparison_predicate": predicate, "dtype": np.bool_}
    signed = elementwise("cmpi", a, b, signedness="signed", **fields)
    assert signed.tolist() == [compare(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    unsigned = elementwise("cmpi", a, b, signedness="unsigned", **fields)
    assert unsigned.tolist() == [
        compare(natural(int(x), bits), natural(int(y), bits)) for x, y in zip(a, b, strict=True)
    ]


def test_one_bit_integers(elementwise: Any) -> None:
    a, b = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    assert elementwise("addi", a, b, overflow="none").tolist() == [False, True, True, False]
    assert elementwise("muli", a, b, overflow="none").tolist() == [False, False, False, True]
    below = {"comparison_predicate": "less_than"}
    assert elementwise("cmpi", a, b, signedness="unsigned", **below).tolist() == [False, True, False, False]
    assert elementwise("cmpi", a, b, signedness="signed", **below).tolist() == [False, False, True, False]  # 1 is -1
    for name, function in (("maxi", max), ("mini", min)):
        for signedness, sign in (("signed", -1), ("unsigned", 1)):
            wanted = [bool(function(sign * int(x), sign * int(y))) for x, y in zip(a, b, strict=True)]
            assert elementwise(name, a, b, signedness=signedness).tolist() == wanted
