"""Arithmetic on f64, rounded once by any mode. No wider float type holds the exact results, so they are computed as
rationals, element by element. That is slow, but few kernels need it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

# These work on floats and on rationals.
_OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "addf": lambda a, b, _: a + b,
    "subf": lambda a, b, _: a - b,
    "mulf": lambda a, b, _: a * b,
    "divf": lambda a, b, _: a / b,
    "fma": lambda a, b, c: a * b + c,
    "sqrt": lambda a, _, __: np.sqrt(a),
}


def rounded(name: str, mode: str) -> Callable[..., Any]:
    """An operation on arrays or scalars of f64, rounded once by an IEEE mode."""
    operation = _OPERATIONS[name]

    def one(a: float, b: float, c: float) -> float:
        if name == "fma" and math.isinf(c) and math.isfinite(a) and math.isfinite(b):
            return c  # also where the rounded product is an infinity too, of the other sign
        plain = float(operation(np.float64(a), np.float64(b), np.float64(c)))
        if math.isnan(plain) or not all(map(math.isfinite, (a, b, c))) or (name == "divf" and b == 0):
            return plain
        if name == "sqrt":
            return _directed(plain, Fraction(a) - Fraction(plain) ** 2, mode)
        exact = operation(Fraction(a), Fraction(b), Fraction(c))
        if not exact:
            return -0.0 if mode == "negative_inf" and zero_rounds_down(name, a, b, c) else plain
        value = _nearest(exact)
        return _directed(value, exact - Fraction(value) if math.isfinite(value) else -value, mode)

    each = np.frompyfunc(one, 3, 1)

    def compute(a: Any, b: Any = 0.0, c: Any = 0.0) -> Any:
        return np.asarray(each(a, b, c), np.float64)[()]

    return compute


def zero_rounds_down(name: str, a: Any, b: Any, c: Any) -> Any:
    """True if an exact zero becomes -0 when rounded down. For a sum it does, unless both operands are +0."""
    if name not in ("addf", "subf", "fma"):
        return False
    x, y = (a * b, c) if name == "fma" else (a, -b if name == "subf" else b)
    return np.signbit(x) | np.signbit(y)


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)  # to nearest, ties to even
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _directed(value: float, error: Fraction | float, mode: str) -> float:
    """The nearest value, or its neighbour if the directed mode requires it. `error`: exact - value, or its sign."""
    if error > 0 and (mode == "positive_inf" or (mode == "zero" and value < 0)):
        return math.nextafter(value, math.inf)
    if error < 0 and (mode == "negative_inf" or (mode == "zero" and value > 0)):
        return math.nextafter(value, -math.inf)
    return value
