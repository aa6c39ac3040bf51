"""Roundings that numpy has no operation for: directed modes to any float type, and floats to integers.

Values are rounded from f64. `error` is the sign of exact result - f64 value, so that a directed mode is right even if
the f64 value is inexact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .elements import Element

# precision in bits (with the hidden one), exponent of the smallest normal number, largest finite value, has infinity
_FORMATS: dict[str, tuple[int, int, float, bool]] = {
    "f32": (24, -126, 3.4028234663852886e38, True),
    "tf32": (11, -126, 3.4011621342146535e38, True),
    "f16": (11, -14, 65504.0, True),
    "bf16": (8, -126, 3.3895313892515355e38, True),
    "f8E5M2": (3, -14, 57344.0, True),
    "f8E4M3FN": (4, -6, 448.0, False),
    "fnv8E5M3FNU": (4, -14, 114688.0, False),
    "f4E2M1FN": (2, 0, 6.0, False),
}


def holds(element: Element, bits: int) -> bool:
    """Whether it has every integer of so many bits, sign apart."""
    precision, _, largest, _ = _FORMATS.get(element.name, (0, 0, 0.0, False))
    return bits <= precision and 2.0**bits <= largest


def nearest_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


_TO_INTEGRAL: dict[str, Callable[[Any], Any]] = {
    "nearest_even": np.rint,
    "nearest_away": nearest_away,
    "zero": np.trunc,
    "nearest_int_to_zero": np.trunc,
    "negative_inf": np.floor,
    "positive_inf": np.ceil,
}


def directed_rounder(element: Element, mode: str) -> Callable[..., Any]:
    """`round(value64, error=0)` into `element` by `mode`, in the element's compute dtype."""
    if element.name == "f64":
        return _f64_rounder(mode)
    precision, lowest, largest, has_infinity = _FORMATS[element.name]
    integral = _TO_INTEGRAL[mode]
    compute = element.compute.type

    def round_(value: Any, error: Any = 0.0) -> Any:
        value = np.asarray(value, np.float64)
        mantissa, exponent = np.frexp(value)
        # Just below a power of two the steps are half as wide.
        exponent = exponent - ((np.abs(mantissa) == 0.5) & (np.sign(error) * value < 0))
        quantum = np.ldexp(1.0, np.maximum(exponent - 1, lowest) - (precision - 1))
        steps = value / quantum
        # The error of f64 matters only on a step or half-way between two, so adding a quarter of a step represents it.
        steps = np.where(2 * steps == np.rint(2 * steps), steps + 0.25 * np.sign(error), steps)
        rounded = np.copysign(integral(steps) * quantum, value)
        down = (mode == "zero") | ((mode == "negative_inf") & (value > 0)) | ((mode == "positive_inf") & (value < 0))
        top = np.copysign(np.where(down | (not has_infinity), largest, np.inf), value)
        rounded = np.where((np.abs(rounded) > largest) & np.isfinite(value), top, rounded)
        result = np.where(np.isfinite(value), rounded, value).astype(compute)
        return result if result.ndim else result[()]

    return round_


def saturating(element: Element, mode: str) -> Callable[..., Any]:
    """Like `directed_rounder`, but numbers too large for `element`, and infinities, become its largest number.
    So does a NaN of f4E2M1FN, which has none (PTX ISA, cvt). fnv8E5M3FNU has no sign: what is below zero becomes 0."""
    round_, largest = directed_rounder(element, mode), _FORMATS[element.name][2]
    smallest = 0.0 if element.name == "fnv8E5M3FNU" else -largest

    def saturate(value: Any, error: Any = 0.0) -> Any:
        inside = np.clip(np.asarray(value, np.float64), smallest, largest)
        if element.name == "f4E2M1FN":
            inside = np.where(np.isnan(inside), largest, inside)
        return round_(inside, error)

    return saturate


def power_of_two(mode: str) -> Callable[[Any], Any]:
    """The magnitude of a float rounded to a scale (f8E8M0FNU), a power of two from 2^-127 to 2^127: down, or up by
    `positive_inf`."""

    def scale(value: Any) -> Any:
        inside = np.clip(np.abs(np.asarray(value, np.float64)), 2.0**-127, 2.0**127)
        mantissa, exponent = np.frexp(inside)
        power = exponent - (1 if mode == "zero" else mantissa == 0.5)
        return np.where(np.isnan(inside), np.nan, np.ldexp(1.0, power)).astype(np.float32)[()]

    return scale


def _f64_rounder(mode: str) -> Callable[..., Any]:
    """Rounds to f64. The values are already the nearest; a directed mode moves those that the error shows to be on the
    wrong side."""

    def round_(value: Any, error: Any = 0.0) -> Any:
        value = np.asarray(value, np.float64)
        up = (mode == "positive_inf") | ((mode == "zero") & (value < 0))
        down = (mode == "negative_inf") | ((mode == "zero") & (value > 0))
        value = np.where(up & (error > 0), np.nextafter(value, np.inf), value)
        return np.where(down & (error < 0), np.nextafter(value, -np.inf), value)[()]

    return round_


def integer_rounder(element: Element, signed: bool, mode: str, source: Element, saturating: bool) -> Callable[..., Any]:
    """Floats of `source` to integers of `element`, rounded by `mode`: `convert(value, fits=False)`; `fits`: it is known
    that all do. An i1 says whether the float differs from 0; of
    f8E4M3FN and f8E5M2 whether its bits do, so that -0 gives 1, as on a GPU.

    What does not fit becomes the nearest integer with `saturating`, and NaN 0. Without, it is undefined, and this gives
    what the instructions of a GPU do: they clamp to 16 bits or more, of which i8 takes the lowest, and make NaN 0, or
    the highest bit alone if they read f64 or write 64 bits (PTX ISA, cvt).
    """
    if element.bits == 1:
        return _differs_from_zero(by_bits=source.name in ("f8E4M3FN", "f8E5M2"))
    integral = _TO_INTEGRAL[mode]
    bits = element.bits if saturating else max(element.bits, 16)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    limit = float(high + 1)  # exact, unlike `high` itself
    dtype = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    top = not saturating and (source.name == "f64" or bits == 64)
    nan = np.array(1 << (bits - 1) if top else 0, f"u{bits // 8}").view(dtype)

    exact = np.float64 if integral is nearest_away else None  # the others are exact in f32 too

    def convert(value: Any, fits: bool = False) -> Any:
        if fits or _within(value, low, high):
            return integral(np.asarray(value, exact)).astype(dtype).astype(element.compute, copy=False)
        x = integral(np.asarray(value, np.float64))
        inside = np.where(np.isnan(x) | (x >= limit) | (x < low), 0.0, x)
        whole = inside.astype(dtype)
        whole = np.where(x >= limit, np.array(high, dtype), whole)
        whole = np.where(x < low, np.array(low, dtype), whole)
        return np.where(np.isnan(x), nan, whole).astype(element.compute)

    return convert


def _differs_from_zero(*, by_bits: bool) -> Callable[[Any], Any]:
    def differs(value: Any) -> Any:
        found = np.asarray(value) != 0
        return found | np.signbit(value) if by_bits else found

    return differs


def beyond(element: Element, signed: bool, mode: str) -> Callable[[Any], Any]:
    """Where a float, rounded by `mode`, is no integer of `element`: NaN, or out of range. None if it is one everywhere,
    as is usual."""
    integral = _TO_INTEGRAL[mode]
    low, high = (element.low, element.high) if signed else (0, (1 << element.bits) - 1)
    limit = float(high + 1)

    def outside(value: Any) -> Any:
        if _within(value, low, high):
            return None
        x = integral(np.asarray(value, np.float64))
        bad = ~((x >= low) & (x < limit))
        return bad if bad.any() else None

    return outside


def _within(value: Any, low: int, high: int) -> bool:
    """True if all of `value` is from `low` to `high`, so that it is there when rounded too: two passes see it. A NaN is
    not. Python compares a float with an int exactly."""
    least = float(np.minimum.reduce(value, axis=None))
    return least >= low and float(np.maximum.reduce(value, axis=None)) <= high


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b and the exact error of it (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b and the exact error of it (Dekker, with Veltkamp's splitting), for f64 without over- or underflow."""
    p = a * b
    c = 134217729.0 * a
    ah = c - (c - a)
    c = 134217729.0 * b
    bh = c - (c - b)
    al, bl = a - ah, b - bh
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)
