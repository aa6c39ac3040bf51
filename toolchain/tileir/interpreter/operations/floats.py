"""Floating-point arithmetic, comparison and mathematics.

Results are computed in f32 (f64 for f64) and rounded to the tile's type after each operation. `approx` and `full` are
computed precisely, which these modes allow, but for quotients of vast divisors. Operations are not contracted; only
`fma` rounds once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..analysis.fields import enum, flag, tile_of
from ..numbers import exact
from ..numbers.elements import Element
from ..numbers.rounding import directed_rounder, two_product, two_sum
from .codegen import Emitter, lowering

_NEAREST = ("nearest_even", "approx", "full")
Function = Callable[..., Any]


def flush(x: Any) -> Any:
    """f32 subnormals to zero of the same sign."""
    small = np.abs(x) < np.float32(2.0**-126)
    return np.where(small, np.copysign(np.float32(0), x), x)[()] if np.count_nonzero(small) else x


def _exact(name: str, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Computes an operation on f32 values in f64. Returns the result and the sign of its error."""
    if name in ("addf", "subf"):
        return two_sum(a, b if name == "addf" else -b)
    if name == "mulf":
        return a * b, np.float64(0.0)
    if name == "fma":
        return two_sum(a * b, c)
    if name == "divf":
        q = a / b
        product, low = two_product(q, b)
        return q, ((a - product) - low) * np.sign(b)
    root = np.sqrt(a)
    product, low = two_product(root, root)
    return root, (a - product) - low


def _fused(a: Any, b: Any, c: Any) -> Any:
    """a * b + c of f32, rounded once. The product is exact in f64, but the sum may be rounded. Rounding that sum again
    to f32 goes wrong only if it looks like a tie. Such a sum is moved to the neighbour with an odd last bit, on the
    side of the exact result, so that it is no longer a tie."""
    product = np.multiply(a, b, dtype=np.float64)
    total = product + c
    doubtful = total.view(np.int64) & 0x1FFFFFFF == 0x10000000  # halfway, of the 29 mantissa bits that f32 lacks
    small = np.abs(total) < 2.0**-126
    if np.count_nonzero(small):
        doubtful = doubtful | (small & (total != 0))  # subnormals lose more bits
    if np.count_nonzero(doubtful):
        total = np.asarray(total)
        sums = total[doubtful]
        parts = (np.broadcast_to(np.asarray(x, np.float64), total.shape)[doubtful] for x in (product, c))
        lost = two_sum(*parts)[1]
        even = sums.view(np.int64) & 1 == 0
        inexact = (lost < 0) | (lost > 0)
        total[doubtful] = np.where(inexact & even, np.nextafter(sums, np.copysign(np.inf, lost)), sums)
    return total.astype(np.float32)[()]


_PLAIN: dict[str, str] = {
    "addf": "{} + {}", "subf": "{} - {}", "mulf": "{} * {}", "divf": "{} / {}",
}  # fmt: skip


@lowering("addf", "subf", "mulf", "divf", "fma", "sqrt")
def _arithmetic(emitter: Emitter, op: Any) -> None:
    name = op.name.rpartition(".")[2]
    element = tile_of(op.results[0]).element
    values = [emitter.ref(v) for v in op.operands]
    mode = enum(op, "rounding_mode")
    ftz = flag(op, "flush_to_zero")
    if ftz:
        values = [f"{emitter.bind(flush)}({v})" for v in values]
    # numpy has no directed modes, and its fma in a narrow type would round twice.
    rounds = mode not in _NEAREST or (name == "fma" and element.name != "f32")
    if rounds:
        function = exact.rounded(name, mode) if element.name == "f64" else directed(name, element, mode, ftz)
        expression = f"{emitter.bind(function, 'directed')}({', '.join(values)})"
    elif name == "divf" and mode == "approx":
        expression = f"{emitter.bind(approximate_quotient)}({', '.join(values)})"
    elif name in _PLAIN:
        expression = _PLAIN[name].format(*values)
    elif name == "sqrt":
        expression = f"{emitter.bind(np.sqrt)}({values[0]})"
    else:
        expression = f"{emitter.bind(_fused)}({', '.join(values)})"
    if ftz:  # of f32, which needs no rounding
        expression = f"{emitter.bind(flush)}({expression})"
    emitter.let_float(op.results[0], expression, rounds=not rounds)


def approximate_quotient(a: Any, b: Any) -> Any:
    """a / b of f32 by b's reciprocal, which is 0 beyond 2^126: so is the quotient, or NaN of an infinity (Tile IR,
    `divf`)."""
    quotient = a / b
    vast = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b)
    if not np.count_nonzero(vast):
        return quotient
    return np.where(vast, a * np.copysign(np.float32(0), b), quotient)[()]


def directed(name: str, element: Element, mode: str, ftz: bool = False) -> Function:
    """An operation on an element type that f32 can hold, rounded once by an IEEE mode. With `ftz` a quotient that is
    subnormal before it is rounded is 0 of its sign, as on a GPU; of other results `flush` makes 0."""
    narrow = directed_rounder(element, mode)
    smallest = 2.0**-126

    def compute(a: Any, b: Any = 0.0, c: Any = 0.0) -> Any:
        wide = [np.asarray(x, np.float64) for x in (a, b, c)]
        value, error = _exact(name, *wide)
        if mode == "negative_inf":
            value = np.where((value == 0) & (error == 0) & exact.zero_rounds_down(name, *wide), -0.0, value)
        error = np.where(np.isfinite(error), error, 0.0)
        result = narrow(value, error)
        if ftz and name == "divf":
            tiny = (np.abs(value) < smallest) | ((np.abs(value) == smallest) & (error * value < 0))
            result = np.where(tiny, np.copysign(np.float32(0), value.astype(np.float32)), result)[()]
        return result

    return compute


def _in_f64(name: str, function: Function) -> Function:
    """A function computed in f64 and rounded back to the compute dtype: numpy's own in f32 are up to 3 ulps off."""

    def compute(*values: Any) -> Any:
        return function(*values, dtype=np.float64).astype(values[0].dtype)

    compute.__name__ = name  # as it stands in the generated code
    return compute


def _reciprocal_root(x: Any, dtype: Any) -> Any:
    return 1.0 / np.sqrt(x, dtype=dtype)


_EXACT: dict[str, Function] = {
    "absf": np.abs, "negf": np.negative, "ceil": np.ceil, "floor": np.floor, "remf": np.fmod,
}  # fmt: skip
_INEXACT: dict[str, Function] = {
    name: _in_f64(name, function)
    for name, function in {
        "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2,
        "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
        "rsqrt": _reciprocal_root, "atan2": np.arctan2, "pow": np.power,
    }.items()
}  # fmt: skip
_FUNCTIONS = {**_EXACT, **_INEXACT}


@lowering(*_FUNCTIONS)
def _function(emitter: Emitter, op: Any) -> None:
    name = op.name.rpartition(".")[2]
    values = [emitter.ref(v) for v in op.operands]
    ftz = flag(op, "flush_to_zero")
    if ftz:
        values = [f"{emitter.bind(flush)}({v})" for v in values]
    expression = f"{emitter.bind(_FUNCTIONS[name], name)}({', '.join(values)})"
    emitter.let_float(
        op.results[0], f"{emitter.bind(flush)}({expression})" if ftz else expression, rounds=name in _INEXACT
    )


@lowering("fpowi")
def _integer_power(emitter: Emitter, op: Any) -> None:
    power = emitter.bind(integer_power(tile_of(op.exponent).element), "power")
    emitter.let_float(op.results[0], f"{power}({emitter.ref(op.source)}, {emitter.ref(op.exponent)})", rounds=True)


def integer_power(exponent: Element) -> Function:
    """x ** n for integers n, which are signed: an i1 is 0 or -1."""
    sign = -1.0 if exponent.bits == 1 else 1.0

    def compute(x: Any, n: Any) -> Any:
        return np.power(x.astype(np.float64), sign * np.asarray(n, np.float64)).astype(x.dtype)

    return compute


def extremum(largest: bool, propagate_nan: bool) -> Function:
    """maxf or minf. +0 is greater than -0. Without `propagate_nan`, a number and a NaN give the number."""
    if largest:
        ufunc = np.maximum if propagate_nan else np.fmax
    else:
        ufunc = np.minimum if propagate_nan else np.fmin

    def compute(a: Any, b: Any) -> Any:
        result = ufunc(a, b)
        if not result.all():  # for +0 and -0 numpy may return either
            negative = np.logical_and if largest else np.logical_or
            both = (a == 0) & (b == 0)
            zero = np.where(negative(np.signbit(a), np.signbit(b)), -0.0, 0.0).astype(result.dtype)
            result = np.where(both, zero, result)[()]
        return result

    return compute


_MAX_MIN = {(largest, nan): extremum(largest, nan) for largest in (True, False) for nan in (True, False)}


@lowering("maxf", "minf")
def _extremum(emitter: Emitter, op: Any) -> None:
    function = _MAX_MIN[op.name.endswith("maxf"), flag(op, "propagate_nan")]
    values = [emitter.ref(op.lhs), emitter.ref(op.rhs)]
    if flag(op, "flush_to_zero"):
        values = [f"{emitter.bind(flush)}({v})" for v in values]
    emitter.let_float(op.results[0], f"{emitter.bind(function, op.name[-4:])}({', '.join(values)})", rounds=False)


def _differ(a: Any, b: Any) -> Any:
    return (a < b) | (a > b)


# An ordered comparison with a NaN is false. An unordered comparison is the negation of the opposite ordered one.
_ORDERED: dict[str, Function] = {
    "equal": np.equal,
    "not_equal": _differ,
    "less_than": np.less,
    "less_than_or_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_than_or_equal": np.greater_equal,
}
_OPPOSITE = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less_than": "greater_than_or_equal",
    "less_than_or_equal": "greater_than",
    "greater_than": "less_than_or_equal",
    "greater_than_or_equal": "less_than",
}


def comparison(predicate: str, ordering: str) -> Function:
    if ordering == "ordered":
        return _ORDERED[predicate]
    opposite = _ORDERED[_OPPOSITE[predicate]]

    def compare(a: Any, b: Any) -> Any:
        return np.logical_not(opposite(a, b))

    return compare


@lowering("cmpf")
def _compare(emitter: Emitter, op: Any) -> None:
    function = comparison(enum(op, "comparison_predicate"), enum(op, "comparison_ordering"))
    expression = f"{emitter.bind(function, 'compare')}({emitter.ref(op.lhs)}, {emitter.ref(op.rhs)})"
    emitter.let(op.results[0], f"bool({expression})" if emitter.scalar(op.results[0]) else expression)
