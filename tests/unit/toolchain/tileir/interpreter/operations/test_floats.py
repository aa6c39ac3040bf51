"""Float ops against exact rationals rounded once, and against numpy in f64 where no exact value exists."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

BF16 = ml_dtypes.bfloat16
# precision in bits, exponent of the smallest normal number
FORMATS = {"float16": (11, -14), "bfloat16": (8, -126), "float32": (24, -126), "float64": (53, -1022)}
DTYPES = {"float16": np.float16, "bfloat16": BF16, "float32": np.float32, "float64": np.float64}
MODES = ("nearest_even", "zero", "negative_inf", "positive_inf")


def rounded(value: Fraction, precision: int, lowest: int, mode: str) -> Fraction:
    """`value` rounded once to a binary format, without overflow."""
    if not value:
        return value
    exponent = lowest
    magnitude = abs(value)
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    quantum = Fraction(2) ** (exponent - precision + 1)
    steps = value / quantum
    if mode == "nearest_even":
        return round(steps) * quantum
    down = mode == "negative_inf" or (mode == "zero" and value > 0)
    return (steps.__floor__() if down else steps.__ceil__()) * quantum


def samples(dtype: Any) -> list[np.ndarray]:
    """Numbers whose sums and products need rounding: 64 pairs and a third."""
    rng = np.random.default_rng(7)
    parts = [rng.standard_normal(64) * s for s in (1.0, 3.0, 0.01)]
    parts[0][:4] = [1.0, 1.0, -1.0, 3.0]
    parts[1][:4] = [2.0**-12, -(2.0**-12), 2.0**-9, -(2.0**-11)]
    return [p.astype(dtype) for p in parts]


EXACT = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_arithmetic_rounds_once(elementwise: Any, dtype: str, name: str, mode: str) -> None:
    operands = samples(DTYPES[dtype])[: 3 if name == "fma" else 2]
    result = elementwise(name, *operands, rounding_mode=mode)
    for got, *values in zip(result, *operands, strict=True):
        exact = EXACT[name](*(Fraction(float(v)) for v in values))
        assert Fraction(float(got)) == rounded(exact, *FORMATS[dtype], mode), (name, values)


def test_an_approximate_quotient_of_a_vast_divisor_is_zero(elementwise: Any) -> None:
    """Its reciprocal is 0: Tile IR, `divf`."""
    vast = np.float32(1.5 * 2.0**126)
    x = np.array([vast, -1, np.inf, np.nan, 3, 1, np.inf, 6], np.float32)
    y = np.array([vast, vast, -vast, vast, 2.0**126, np.inf, 2, -3], np.float32)
    given = [0, -0.0, np.nan, np.nan, 3 * 2.0**-126, 0, np.inf, -2]
    quotients = elementwise("divf", x, y, rounding_mode="approx")
    np.testing.assert_array_equal(quotients, np.array(given, np.float32))
    assert np.signbit(quotients).tolist()[:2] == [False, True]
    assert elementwise("divf", x, y, rounding_mode="full").tolist()[0] == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["addf", "mulf", "fma", "divf"])
def test_f64_arithmetic_rounds_once(elementwise: Any, name: str, mode: str) -> None:
    operands = samples(np.float64)[: 3 if name == "fma" else 2]
    result = elementwise(name, *operands, rounding_mode=mode)
    for got, *values in zip(result, *operands, strict=True):
        exact = EXACT[name](*(Fraction(float(v)) for v in values))
        assert Fraction(float(got)) == rounded(exact, *FORMATS["float64"], mode), (name, values)


def test_directed_addition_of_far_apart_numbers(elementwise: Any) -> None:
    """The small operand is lost even in f64, and still decides."""
    a, b = np.array([1, 1, -1, -1], np.float32), np.array([1, -1, 1, -1], np.float32) * np.float32(1e-30)
    up, down = np.nextafter(np.float32(1), np.float32(2)), np.nextafter(np.float32(1), np.float32(0))
    assert elementwise("addf", a, b, rounding_mode="positive_inf").tolist() == [up, 1, -down, -1]
    assert elementwise("addf", a, b, rounding_mode="negative_inf").tolist() == [1, down, -1, -up]
    assert elementwise("addf", a, b, rounding_mode="zero").tolist() == [1, down, -down, -1]


@pytest.mark.parametrize("mode", MODES)
def test_square_root(elementwise: Any, mode: str) -> None:
    x = np.abs(samples(np.float32)[0])
    for got, value in zip(elementwise("sqrt", x, rounding_mode=mode), x, strict=True):
        low = Fraction(float(np.nextafter(got, np.float32(0))))
        high, root = Fraction(float(np.nextafter(got, np.float32(9)))), Fraction(float(got))
        exact = Fraction(float(value))
        if mode == "nearest_even":
            assert ((low + root) / 2) ** 2 <= exact <= ((root + high) / 2) ** 2
        elif mode == "positive_inf":
            assert low**2 < exact <= root**2
        else:
            assert root**2 <= exact < high**2


def test_overflow_by_rounding_mode(elementwise: Any) -> None:
    big = np.array([60000, -60000], np.float16)
    assert elementwise("addf", big, big, rounding_mode="nearest_even").tolist() == [np.inf, -np.inf]
    assert elementwise("addf", big, big, rounding_mode="zero").tolist() == [65504, -65504]
    assert elementwise("addf", big, big, rounding_mode="positive_inf").tolist() == [np.inf, -65504]


def test_nothing_is_contracted_but_fma(elementwise: Any) -> None:
    x = np.full(4, 1 + 2.0**-12, np.float32)
    square = elementwise("mulf", x, x, rounding_mode="nearest_even")
    assert elementwise("subf", square, square, rounding_mode="nearest_even").tolist() == [0] * 4
    assert elementwise("fma", x, x, -square, rounding_mode="nearest_even").tolist() == [2.0**-24] * 4


def test_bf16_is_rounded_after_every_operation(elementwise: Any) -> None:
    one, small = np.ones(2, BF16), np.full(2, 2.0**-8, BF16)
    total = elementwise("addf", one, small, rounding_mode="nearest_even")
    assert elementwise("addf", total, small, rounding_mode="nearest_even").tolist() == [1, 1]  # never 1 + 2^-7


def test_flush_to_zero_keeps_the_sign(elementwise: Any) -> None:
    tiny = np.array([1e-40, -1e-40, 1.0, -0.0], np.float32)
    result = elementwise("addf", tiny, np.zeros(4, np.float32), rounding_mode="nearest_even", flush_to_zero=None)
    assert result.tolist() == [0, 0, 1, 0]
    half = np.array([2.0**-126, -(2.0**-126)], np.float32)
    result = elementwise("mulf", half, np.full(2, 0.5, np.float32), rounding_mode="nearest_even", flush_to_zero=None)
    assert result.tolist() == [0, 0] and np.signbit(result).tolist() == [False, True]
    assert elementwise("mulf", half, np.full(2, 0.5, np.float32), rounding_mode="nearest_even")[0] == 2.0**-127


@pytest.mark.parametrize(("mode", "sign"), [("positive_inf", 1), ("negative_inf", -1)])
def test_a_quotient_that_is_tiny_before_it_is_rounded_is_flushed(elementwise: Any, mode: str, sign: int) -> None:
    """As on a GPU. Rounded up it would be the smallest normal number, which it is without the flag."""
    smallest = np.float32(2.0**-126)
    x = np.full(4, sign * smallest, np.float32)
    y = np.array([np.nextafter(np.float32(1), np.float32(2)), 1, 0.5, 2], np.float32)
    flushed = elementwise("divf", x, y, rounding_mode=mode, flush_to_zero=None)
    assert flushed.tolist() == [0, sign * smallest, 2 * sign * smallest, 0]
    assert (np.signbit(flushed) == (sign < 0)).all()
    assert elementwise("divf", x, y, rounding_mode=mode).tolist()[:2] == [sign * smallest] * 2


SPECIAL = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 3.0]


def pairs() -> tuple[np.ndarray, np.ndarray]:
    values = np.array(list(itertools.product(SPECIAL, SPECIAL)), np.float32)
    return values[:, 0].copy(), values[:, 1].copy()


@pytest.mark.parametrize("propagates", [False, True])
@pytest.mark.parametrize("name", ["maxf", "minf"])
def test_extremum(elementwise: Any, name: str, propagates: bool) -> None:
    a, b = pairs()
    result = elementwise(name, a, b, **({"propagate_nan": None} if propagates else {}))
    sign = 1 if name == "maxf" else -1
    for got, x, y in zip(result, a, b, strict=True):
        numbers = [v for v in (x, y) if v == v]
        if not numbers or (propagates and len(numbers) < 2):
            assert np.isnan(got)
            continue
        best = max(numbers, key=lambda v: (sign * v, -sign * np.signbit(v)))  # +0 is above -0
        assert got == best and np.signbit(got) == np.signbit(best), (name, x, y, got)


@pytest.mark.parametrize("ordering", ["ordered", "unordered"])
@pytest.mark.parametrize(
    ("predicate", "compare"),
    [
        ("equal", lambda x, y: x == y), ("not_equal", lambda x, y: x < y or x > y), ("less_than", lambda x, y: x < y),
        ("less_than_or_equal", lambda x, y: x <= y), ("greater_than", lambda x, y: x > y),
        ("greater_than_or_equal", lambda x, y: x >= y),
    ],
)  # fmt: skip
def test_comparison_with_nan(elementwise: Any, predicate: str, compare: Any, ordering: str) -> None:
    a, b = pairs()
    result = elementwise("cmpf", a, b, dtype=np.bool_, comparison_predicate=predicate, comparison_ordering=ordering)
    unordered = [ordering == "unordered" if x != x or y != y else compare(x, y) for x, y in zip(a, b, strict=True)]
    assert result.tolist() == unordered


FUNCTIONS = {
    "absf": np.abs, "negf": np.negative, "ceil": np.ceil, "floor": np.floor, "exp": np.exp, "exp2": np.exp2,
    "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(elementwise: Any, name: str, dtype: str) -> None:
    x = np.linspace(0.1, 4.3, 32).astype(DTYPES[dtype])
    if name not in ("log", "log2", "rsqrt"):
        x[::2] *= -1
    fields = {"rounding_mode": "full"} if name in ("exp", "tanh") else {}
    result = elementwise(name, x, **fields).astype(np.float64)
    precise = FUNCTIONS[name](x.astype(np.longdouble)).astype(np.float64)
    allowed = np.abs(precise) * 2.0 ** (1 - FORMATS[dtype][0])
    assert (np.abs(result - precise) <= allowed).all()


RANGES = {
    "exp": (-87, 88), "exp2": (-149, 128), "log": (1e-30, 1e30), "log2": (1e-30, 1e30), "sin": (-1e4, 1e4),
    "cos": (-1e4, 1e4), "tan": (-1e4, 1e4), "sinh": (-88, 88), "cosh": (-88, 88), "tanh": (-9, 9),
    "rsqrt": (1e-6, 1e30),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_a_function_of_f32_is_the_nearest_number(elementwise: Any, name: str) -> None:
    low, high = RANGES[name]
    spread = np.random.default_rng(5).random(512)
    x = (low * (high / low) ** spread if low > 0 else low + (high - low) * spread).astype(np.float32)
    fields = {"rounding_mode": "full"} if name in ("exp", "tanh") else {}
    x[:3] = [1, high - 1, 2]
    wanted = FUNCTIONS[name](x.astype(np.longdouble)).astype(np.float32)
    assert np.array_equal(elementwise(name, x, **fields), wanted)


def test_powers_of_two_are_exact(elementwise: Any) -> None:
    """127 too, and those that give subnormal numbers, which a GPU rounds differently."""
    n = np.arange(-149, 128).astype(np.float32)
    x = np.concatenate((n, np.full(512 - n.size, 128, np.float32)))
    assert elementwise("exp2", x).tolist() == [*(2.0**i for i in range(-149, 128)), *[np.inf] * (512 - n.size)]


def test_two_operand_functions(elementwise: Any) -> None:
    x, y = samples(np.float32)[:2]
    a, b = x.astype(np.longdouble), y.astype(np.longdouble)
    assert np.array_equal(elementwise("atan2", x, y), np.arctan2(a, b).astype(np.float32))
    assert np.array_equal(elementwise("pow", np.abs(x), y), (np.abs(a) ** b).astype(np.float32))
    assert np.array_equal(elementwise("remf", x, y), np.fmod(x, y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_integer_powers(elementwise: Any, dtype: Any) -> None:
    x = np.array([2, -3, -3, 0, -0.0, 1.5, np.inf, np.nan], dtype)
    n = np.array([10, 3, 2, -1, -1, -2, -1, 0], np.int32)
    expected = np.array([1024, -27, 9, np.inf, -np.inf, 1 / 2.25, 0, 1], np.float64).astype(dtype)
    assert np.array_equal(elementwise("fpowi", x, n), expected)
    assert np.array_equal(elementwise("fpowi", x, n.astype(np.int8)), expected)


def test_a_power_by_one_bit_is_one_or_the_reciprocal(elementwise: Any) -> None:
    x, n = np.array([4, 4], np.float32), np.array([False, True])
    assert elementwise("fpowi", x, n).tolist() == [1.0, 0.25]


@pytest.mark.parametrize(
    ("dtype", "factors", "below", "above"),
    [("bfloat16", (7, 37), 258, 260), ("float32", (4097, 4097), 2**24 + 2**13, 2**24 + 2**13 + 2)],
)
def test_fma_beside_a_tie_rounds_once(
    elementwise: Any, dtype: str, factors: tuple[int, int], below: int, above: int
) -> None:
    """The product is half-way between two numbers; what decides is too small for f64 to hold beside it."""
    a, b = (np.full(4, x, DTYPES[dtype]) for x in factors)
    c = np.array([2.0**-60, -(2.0**-60), 2.0**-70, -(2.0**-70)], DTYPES[dtype])
    assert elementwise("fma", a, b, c, rounding_mode="nearest_even").tolist() == [above, below] * 2


@pytest.mark.parametrize("mode", ["nearest_even", "zero", "negative_inf", "positive_inf"])
def test_f64_fma_adds_an_infinity_to_a_product_that_no_f64_holds(elementwise: Any, mode: str) -> None:
    largest = np.finfo(np.float64).max
    a, b, c = np.array([[1.5, 1.5, -2.0, 1.5], [largest, -largest, largest, 1.0], [-np.inf, np.inf, np.inf, np.inf]])
    assert elementwise("fma", a, b, c, rounding_mode=mode).tolist() == c.tolist()


@pytest.mark.parametrize("mode", MODES)
def test_f64_fma_that_cancels_rounds_once(elementwise: Any, mode: str) -> None:
    a, b = np.full(2, 1 + 2.0**-30), np.array([1 + 2.0**-31, 1 - 2.0**-29])
    operands = a, b, -(a * b)
    for got, *values in zip(elementwise("fma", *operands, rounding_mode=mode), *operands, strict=True):
        assert Fraction(float(got)) == EXACT["fma"](*map(Fraction, values)) != 0


def test_f64_overflow_by_rounding_mode(elementwise: Any) -> None:
    big, top = np.array([1.7e308, -1.7e308]), np.finfo(np.float64).max
    assert elementwise("addf", big, big, rounding_mode="zero").tolist() == [top, -top]
    assert elementwise("addf", big, big, rounding_mode="positive_inf").tolist() == [np.inf, -top]
    assert elementwise("fma", big, big, big, rounding_mode="nearest_even").tolist() == [np.inf, np.inf]
    assert elementwise("fma", big, -big, big, rounding_mode="negative_inf").tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("mode", MODES)
def test_the_zero_that_a_sum_cancels_to(elementwise: Any, mode: str, dtype: str) -> None:
    """-0 when rounding down, +0 otherwise; +0 + +0 is +0."""
    a, b = (np.array(x, DTYPES[dtype]) for x in ([1.5, 0, 0, -0.0], [-1.5, 0, -0.0, -0.0]))
    one, down = np.ones(4, DTYPES[dtype]), mode == "negative_inf"
    for result in (elementwise("addf", a, b, rounding_mode=mode), elementwise("fma", a, one, b, rounding_mode=mode)):
        assert result.tolist() == [0] * 4 and np.signbit(result).tolist() == [down, False, down, True]
    assert np.signbit(elementwise("subf", a, a, rounding_mode=mode)).tolist() == [down] * 4
