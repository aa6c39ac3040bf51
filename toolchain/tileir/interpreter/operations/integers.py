"""Integer arithmetic, comparison and bit operations.

Rank-0 tiles are Python ints in the signed range, wrapped after each operation; tiles are signed numpy arrays, which
wrap by themselves. Unsigned operations look at the same bits. nsw/nuw overflow, division by zero and shifts by the
width or more are undefined: they trap when sanitizing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..analysis.fields import enum, tile_of
from ..analysis.taint import some
from ..memory.memory import Trap
from ..numbers.elements import Array, Element
from .codegen import Emitter, lowering


def wrap(value: int, bits: int) -> int:
    """Wraps a Python int into the signed range of `bits`."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def unsigned(value: Any, element: Element) -> Any:
    """The same bits as unsigned: an int for an int, an array for an array."""
    if isinstance(value, int):
        return value & ((1 << element.bits) - 1)
    if element.bits == 1:
        return value
    bits = value.view(element.unsigned)
    return bits if element.bits == 8 * bits.itemsize else bits & ((1 << element.bits) - 1)


def signed(value: Any, element: Element) -> Any:
    """The value that the bits have as a signed integer: of i1, whose values are booleans here, 0 or -1."""
    if element.bits > 1:
        return value
    return -int(value) if isinstance(value, int) else -value.astype(np.int64)


def trap_where(bad: Any, poison: Any, message: str) -> None:
    """Trap if `bad` holds for any element that is not poisoned."""
    if some(bad) and (poison is None or some(np.logical_and(bad, np.logical_not(poison)))):
        raise Trap(message)


def _wrapping(emitter: Emitter, result: SSAValue, expression: str) -> None:
    """Assign an int expression whose exact value may leave the type's range."""
    element = tile_of(result).element
    name = emitter.let(result, expression)
    if element.bits == 1:
        emitter.line(f"{name} = ({name} & 1) == 1")
        return
    with emitter.indent(f"if not {element.low} <= {name} <= {element.high}:"):
        emitter.line(f"{name} = {emitter.bind(wrap)}({name}, {element.bits})")


_SYMBOLS = {"addi": "+", "subi": "-", "muli": "*"}
_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "addi": operator.add, "subi": operator.sub, "muli": operator.mul, "shli": operator.lshift,
}  # fmt: skip


def overflow_check(name: str, element: Element, flags: str) -> Callable[[Any, Any, Any], None]:
    """A check that the operation `name` on two values does not overflow although its flags promise that."""
    exact = _EXACT[name]
    bits = element.bits

    def outside(lhs: Any, rhs: Any, low: int, high: int) -> Any:
        if isinstance(lhs, int):
            return not low <= exact(lhs, rhs) <= high
        if bits < 64:
            value = exact(lhs.astype(np.int64), rhs.astype(np.int64))
        else:  # numpy has no wider integer, so use Python's: few kernels promise this for i64
            value = exact(lhs.astype(np.object_), rhs.astype(np.object_))
        return np.logical_or(value < low, value > high).astype(np.bool_)

    def check(lhs: Any, rhs: Any, poison: Any) -> None:
        if flags in ("no_signed_wrap", "no_wrap"):
            amount = unsigned(rhs, element) if name == "shli" else signed(rhs, element)
            bad = outside(signed(lhs, element), amount, element.low, element.high)
            trap_where(bad, poison, f"signed overflow in a {flags} {name}")
        if flags in ("no_unsigned_wrap", "no_wrap"):
            bad = outside(unsigned(lhs, element), unsigned(rhs, element), 0, (1 << bits) - 1)
            trap_where(bad, poison, f"unsigned overflow in a {flags} {name}")

    return check


def _check_overflow(emitter: Emitter, op: Any, name: str, lhs: SSAValue, rhs: SSAValue) -> None:
    flags = enum(op, "overflow")
    if emitter.sanitize and flags != "none":
        check = emitter.bind(overflow_check(name, tile_of(lhs).element, flags), "check_overflow")
        poison = emitter.poison_of((lhs, rhs))
        emitter.line(f"{check}({emitter.ref(lhs)}, {emitter.ref(rhs)}, {poison})")


@lowering("addi", "subi", "muli")
def _arithmetic(emitter: Emitter, op: Any) -> None:
    name = op.name.rpartition(".")[2]
    lhs, rhs = op.lhs, op.rhs
    a, b = emitter.ref(lhs), emitter.ref(rhs)
    _check_overflow(emitter, op, name, lhs, rhs)
    if emitter.scalar(op.results[0]):
        _wrapping(emitter, op.results[0], f"{a} {_SYMBOLS[name]} {b}")
    elif tile_of(lhs).element.bits == 1:
        emitter.let(op.results[0], f"{a} & {b}" if name == "muli" else f"{a} ^ {b}")
    else:
        emitter.let(op.results[0], f"{a} {_SYMBOLS[name]} {b}")


@lowering("andi", "ori", "xori")
def _bitwise(emitter: Emitter, op: Any) -> None:
    symbol = {"andi": "&", "ori": "|", "xori": "^"}[op.name.rpartition(".")[2]]
    emitter.let(op.results[0], f"{emitter.ref(op.lhs)} {symbol} {emitter.ref(op.rhs)}")


@lowering("negi")
def _negate(emitter: Emitter, op: Any) -> None:
    element = tile_of(op.source).element
    source = emitter.ref(op.source)
    if emitter.sanitize and enum(op, "overflow") in ("no_signed_wrap", "no_wrap"):
        poison = emitter.poison_of((op.source,))
        message = f"signed overflow in a {enum(op, 'overflow')} negi"
        lowest = element.low if element.bits > 1 else True
        emitter.line(f"{emitter.bind(trap_where)}({source} == {lowest}, {poison}, {message!r})")
    if emitter.scalar(op.results[0]):
        _wrapping(emitter, op.results[0], f"-{source}")
    else:
        emitter.let(op.results[0], source if element.bits == 1 else f"-{source}")


@lowering("absi")
def _absolute(emitter: Emitter, op: Any) -> None:
    if emitter.scalar(op.results[0]):
        _wrapping(emitter, op.results[0], f"abs({emitter.ref(op.source)})")
    else:
        emitter.let(op.results[0], f"{emitter.bind(np.abs)}({emitter.ref(op.source)})")


@lowering("maxi", "mini")
def _extremum(emitter: Emitter, op: Any) -> None:
    element = tile_of(op.lhs).element
    largest = op.name.endswith("maxi")
    signed = enum(op, "signedness") == "signed"
    if signed and element.bits == 1:  # True is -1 when signed, so the order is opposite to the unsigned one
        largest, signed = not largest, False
    ufunc = np.maximum if largest else np.minimum

    def tile(a: Array, b: Array) -> Array:
        return ufunc(a, b) if signed else ufunc(unsigned(a, element), unsigned(b, element)).view(element.compute)

    def scalar(a: int, b: int) -> int:
        first = (a >= b if signed else unsigned(a, element) >= unsigned(b, element)) == largest
        return a if first else b

    function: Any = scalar if emitter.scalar(op.results[0]) else ufunc if signed else tile
    emitter.let(op.results[0], f"{emitter.bind(function)}({emitter.ref(op.lhs)}, {emitter.ref(op.rhs)})")


COMPARISONS = {
    "equal": "==", "not_equal": "!=", "less_than": "<", "less_than_or_equal": "<=", "greater_than": ">",
    "greater_than_or_equal": ">=",
}  # fmt: skip


@lowering("cmpi")
def _compare(emitter: Emitter, op: Any) -> None:
    element = tile_of(op.lhs).element
    predicate = enum(op, "comparison_predicate")
    a, b = emitter.ref(op.lhs), emitter.ref(op.rhs)
    if predicate not in ("equal", "not_equal"):
        # True is 1 when unsigned and -1 when signed, so a signed comparison of i1 is reversed.
        if enum(op, "signedness") == "unsigned" and element.bits > 1:
            view, kind = emitter.bind(unsigned), emitter.bind(element)
            a, b = f"{view}({a}, {kind})", f"{view}({b}, {kind})"
        elif enum(op, "signedness") == "signed" and element.bits == 1:
            a, b = b, a
    emitter.let(op.results[0], f"{a} {COMPARISONS[predicate]} {b}")


def divider(element: Element, signed: bool, rounding: str) -> Callable[[Any, Any], Any]:
    """Integer division for ints and arrays. A zero divisor has already trapped, unless it is unspecified."""

    def divide(a: Any, b: Any) -> Any:
        if isinstance(b, int) and b == 0:
            return 0
        if not signed:
            a, b = unsigned(a, element), unsigned(b, element)
        quotient = a // b
        if rounding == "positive_inf":
            quotient = quotient + (quotient * b != a)
        elif rounding == "zero" and signed:
            quotient = quotient + ((quotient * b != a) & ((a < 0) != (b < 0)))
        if isinstance(quotient, int):
            return wrap(quotient, element.bits)
        return quotient.astype(element.compute)

    return divide


def remainder(element: Element, signed: bool) -> Callable[[Any, Any], Any]:
    """The remainder of truncated division, with the dividend's sign. A zero divisor is handled as in `divider`."""

    def rem(a: Any, b: Any) -> Any:
        if isinstance(b, int) and b == 0:
            return 0
        if isinstance(a, int):
            if not signed:
                return wrap(unsigned(a, element) % unsigned(b, element), element.bits)
            return abs(a) % abs(b) * (-1 if a < 0 else 1)
        if signed:
            return np.fmod(a, b)
        return np.remainder(unsigned(a, element), unsigned(b, element)).view(element.compute)

    return rem


def check_division(element: Element, signed: bool) -> Callable[[Any, Any, Any], None]:
    def check(a: Any, b: Any, poison: Any) -> None:
        if isinstance(a, int) and isinstance(b, int) and b > 0:
            return
        trap_where(b == 0, poison, "integer division by zero")
        if signed:
            worst = np.logical_and(a == element.low, b == -1)
            trap_where(worst, poison, f"the smallest {element.name} divided by -1")

    return check


@lowering("divi", "remi")
def _divide(emitter: Emitter, op: Any) -> None:
    element = tile_of(op.lhs).element
    signed = enum(op, "signedness") == "signed"
    a, b = emitter.ref(op.lhs), emitter.ref(op.rhs)
    if op.name.endswith("divi"):
        function = divider(element, signed, enum(op, "rounding"))
    else:
        function = remainder(element, signed)
    check = emitter.bind(check_division(element, signed), "check_division")
    # Checked even without `sanitize`: division by zero has no result to continue with.
    emitter.line(f"{check}({a}, {b}, {emitter.poison_of((op.lhs, op.rhs))})")
    emitter.let(op.results[0], f"{emitter.bind(function)}({a}, {b})")


@lowering("mulhii")
def _multiply_high(emitter: Emitter, op: Any) -> None:
    element = tile_of(op.x).element

    def high(a: Any, b: Any) -> Any:
        a, b = unsigned(a, element), unsigned(b, element)
        if isinstance(a, int):
            return wrap((a * b) >> element.bits, element.bits)
        wide = np.object_ if element.bits == 64 else np.uint64
        product = (a.astype(wide) * b.astype(wide)) >> element.bits
        return product.astype(element.unsigned).view(element.compute)

    emitter.let(op.results[0], f"{emitter.bind(high)}({emitter.ref(op.x)}, {emitter.ref(op.y)})")


def shifter(element: Element, left: bool, signed: bool) -> Callable[[Any, Any], Any]:
    """Shifts. A shift by the width or more shifts all bits out, if it does not trap."""
    bits = element.bits

    def shift(a: Any, b: Any) -> Any:
        amount = unsigned(b, element)
        if isinstance(a, int):
            if left:
                return wrap(int(a) << amount, bits) if amount < bits else 0
            return wrap((a if signed else unsigned(a, element)) >> min(amount, bits), bits)
        out = amount >= bits
        small = np.where(out, 0, amount)
        if left:
            return np.where(out, 0, unsigned(a, element) << small).astype(element.unsigned).view(element.compute)
        if signed:
            return a >> np.where(out, bits - 1, amount).astype(element.compute)
        return np.where(out, 0, unsigned(a, element) >> small).astype(element.unsigned).view(element.compute)

    return shift


def check_shift(element: Element) -> Callable[[Any, Any], None]:
    def check(amount: Any, poison: Any) -> None:
        bad = unsigned(amount, element) >= element.bits
        trap_where(bad, poison, f"a shift of {element.name} by its width or more")

    return check


@lowering("shli", "shri")
def _shift(emitter: Emitter, op: Any) -> None:
    element = tile_of(op.lhs).element
    left = op.name.endswith("shli")
    function = shifter(element, left, left or enum(op, "signedness") == "signed")
    if emitter.sanitize:
        check = emitter.bind(check_shift(element), "check_shift")
        emitter.line(f"{check}({emitter.ref(op.rhs)}, {emitter.poison_of((op.rhs,))})")
        if left:
            _check_overflow(emitter, op, "shli", op.lhs, op.rhs)
    emitter.let(op.results[0], f"{emitter.bind(function)}({emitter.ref(op.lhs)}, {emitter.ref(op.rhs)})")
