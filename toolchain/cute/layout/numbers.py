"""Arithmetic and comparison of nested tuples, leaf by leaf. Source: NVIDIA's CuTe IR, "Arithmetic on CuTe values"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import tuples
from .leaves import Dynamic, LayoutError, ceil_div, is_static
from .tuples import IntTuple, congruent, flatten, product


def tuple_add(a: IntTuple, b: IntTuple) -> IntTuple:
    """The sum. The modes that one has more stay as they are, and 0 changes nothing. Raises LayoutError if they do not
    fit."""
    if not isinstance(a, tuple) and isinstance(a, int) and a == 0:
        return b
    return a if isinstance(b, int) and b == 0 else _by_mode(lambda x, y: x + y, a, b, "+")


def tuple_sub(a: IntTuple, b: IntTuple) -> IntTuple:
    """The difference. The modes that one has more stay as they are, also those of `b`, as in CuTe. Raises LayoutError
    if they do not fit."""
    if isinstance(b, int) and b == 0:
        return a
    return _by_mode(lambda x, y: x - y, a, b, "-")


def _by_mode(function: Callable[[Any, Any], Any], a: IntTuple, b: IntTuple, sign: str) -> IntTuple:
    if isinstance(a, tuple) != isinstance(b, tuple):
        raise LayoutError(f"{tuples.text(a)} {sign} {tuples.text(b)}: one is a tuple and the other is not")
    if not isinstance(a, tuple):
        return function(a, b)
    both = [_by_mode(function, x, y, sign) for x, y in zip(a, b, strict=False)]
    return (*both, *(a[len(b) :] or b[len(a) :]))


def shape_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """The part of a shape that a divisor leaves. A number divides the modes of a tuple from left to right, each by what
    it can take. Raises LayoutError if neither of two numbers divides the other."""
    if isinstance(b, tuple):
        if not isinstance(a, tuple):
            return shape_div(a, product(b))
        if len(a) != len(b):
            raise LayoutError(f"{tuples.text(a)} / {tuples.text(b)}: not the same number of modes")
        return tuple(shape_div(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, tuple):
        made: list[IntTuple] = []
        for part in a:
            made.append(shape_div(part, b))
            b = shape_div(b, product(part))
        return tuple(made)
    if is_static(a, b) and (b == 0 or (a % b and b % a)):
        raise LayoutError(f"{a} / {b}: neither divides the other")
    if isinstance(a, Dynamic):
        return a.shape_by(b)
    return b.shape_of(a) if isinstance(b, Dynamic) else ceil_div(a, b)


def divide_up(a: IntTuple, b: IntTuple) -> IntTuple:
    """How many tiles cover a shape, rounded up. The modes that `a` has more stay. Raises LayoutError if `b` has
    more."""
    if isinstance(b, tuple):
        if not isinstance(a, tuple):
            return divide_up(a, product(b))
        if len(a) < len(b):
            raise LayoutError(f"{tuples.text(a)} / {tuples.text(b)}: the tile has more modes")
        return (*(divide_up(x, y) for x, y in zip(a, b, strict=False)), *a[len(b) :])
    if isinstance(a, tuple):
        made: list[IntTuple] = []
        for part in a:
            made.append(divide_up(part, b))
            b = ceil_div(b, product(part))
        return tuple(made)
    if is_static(b) and b == 0:
        raise LayoutError(f"{a} / 0: nothing is covered by tiles of 0")
    return ceil_div(a, b)


def equal(a: IntTuple, b: IntTuple) -> bool | None:
    """Whether two tuples are the same; None if that is known only when the kernel runs."""
    if not congruent(a, b):
        return False
    pairs = list(zip(flatten(a), flatten(b), strict=True))
    if any(is_static(x, y) and x != y for x, y in pairs):
        return False
    return True if all(is_static(x, y) for x, y in pairs) else None


def less_each(a: IntTuple, b: IntTuple) -> bool | None:
    """Whether each leaf is less than the other's; None if that is known only when the kernel runs. Raises LayoutError
    if the two are not nested alike."""
    if not congruent(a, b):
        raise LayoutError(f"{tuples.text(a)} and {tuples.text(b)} are not nested alike")
    pairs = list(zip(flatten(a), flatten(b), strict=True))
    if any(is_static(x, y) and x >= y for x, y in pairs):
        return False
    return True if all(is_static(x, y) for x, y in pairs) else None
