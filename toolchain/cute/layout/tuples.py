"""Nested tuples: shapes, strides and coordinates.

A tuple's leaves are those of leaves.py, and None in a coordinate, which stands for a whole mode and is written `_`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from .leaves import Basis, Dynamic, LayoutError

IntTuple = Any  # int, Dynamic, Basis, None, or a tuple of these

_TOKEN = re.compile(r"\s*(?:(?P<number>-?\d+)|(?P<dynamic>\?(?:\{(?P<said>[^}]*)\})?)|(?P<sign>[(),_@]))")


def flatten(nested: IntTuple) -> tuple[Any, ...]:
    """The leaves from left to right."""
    if not isinstance(nested, tuple):
        return (nested,)
    return tuple(leaf for part in nested for leaf in flatten(part))


def product(nested: IntTuple) -> Any:
    """The product of all leaves; 1 for an empty tuple."""
    made: Any = 1
    for leaf in flatten(nested):
        made = made * leaf
    return made


def rank(nested: IntTuple) -> int:
    """The number of modes; 1 for a leaf."""
    return len(nested) if isinstance(nested, tuple) else 1


def depth(nested: IntTuple) -> int:
    """How deep the tuples are nested: 0 for a leaf, 1 for a flat tuple."""
    return 1 + max(map(depth, nested), default=0) if isinstance(nested, tuple) else 0


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """True if both have the same nesting."""
    if isinstance(a, tuple) != isinstance(b, tuple):
        return False
    return not isinstance(a, tuple) or (len(a) == len(b) and all(map(congruent, a, b)))


def weakly_congruent(a: IntTuple, b: IntTuple) -> bool:
    """True if `b` has the nesting of `a`, or more where `a` has a leaf."""
    if not isinstance(a, tuple):
        return True
    return isinstance(b, tuple) and len(a) == len(b) and all(map(weakly_congruent, a, b))


def transform(function: Callable[..., Any], first: IntTuple, *others: IntTuple) -> IntTuple:
    """Calls the function with the leaves of congruent tuples, and keeps the nesting."""
    if isinstance(first, tuple):
        return tuple(transform(function, *parts) for parts in zip(first, *others, strict=True))
    return function(first, *others)


def like(leaves: Iterator[Any], nested: IntTuple) -> IntTuple:
    """The next leaves, nested as another tuple is."""
    if isinstance(nested, tuple):
        return tuple(like(leaves, part) for part in nested)
    return next(leaves)


def compact(shape: IntTuple, first: Any = 1) -> IntTuple:
    """Column-major strides of a shape: each is the product of the sizes to its left, times `first`."""
    made: list[Any] = []
    for size in flatten(shape):
        made.append(first)
        first = first * size
    return like(iter(made), shape)


def text(nested: IntTuple) -> str:
    """A tuple as CuTe IR writes it: `(2,(3,?))`."""
    if isinstance(nested, tuple):
        return "(" + ",".join(map(text, nested)) + ")"
    return "_" if nested is None else str(nested)


def parse(written: str) -> IntTuple:
    """The tuple in a text such as `(2,(3,?{div=4}),1@0,_)`. Raises LayoutError with the column."""
    made, at = _parse(written, 0)
    if written[at:].strip():
        raise LayoutError(f"{written!r}: column {at + 1}: the tuple ends before this")
    return made


def _next(written: str, at: int) -> re.Match[str]:
    found = _TOKEN.match(written, at)
    if found is None:
        raise LayoutError(f"{written!r}: column {at + 1}: expected a number, ?, _ or a parenthesis")
    return found


def _parse(written: str, at: int) -> tuple[IntTuple, int]:
    token = _next(written, at)
    if token["number"] is not None or token["dynamic"] is not None:
        return _leaf(written, token)
    if token["sign"] == "_":
        return None, token.end()
    if token["sign"] != "(":
        raise LayoutError(f"{written!r}: column {at + 1}: expected a leaf or '(', not {token['sign']!r}")
    parts: list[IntTuple] = []
    at = token.end()
    if (end := _next(written, at))["sign"] == ")":
        return (), end.end()
    while True:
        part, at = _parse(written, at)
        parts.append(part)
        sign = _next(written, at)
        at = sign.end()
        if sign["sign"] == ")":
            return tuple(parts), at
        if sign["sign"] != ",":
            raise LayoutError(f"{written!r}: column {sign.start() + 1}: expected ',' or ')'")


def _leaf(written: str, token: re.Match[str]) -> tuple[Any, int]:
    value: Any = int(token["number"]) if token["number"] is not None else _dynamic(written, token)
    at, path = token.end(), list[int]()
    while written[at : at + 1] == "@":
        mode = _next(written, at + 1)
        if mode["number"] is None:
            raise LayoutError(f"{written!r}: column {at + 2}: expected the number of a mode")
        path.append(int(mode["number"]))
        at = mode.end()
    return (Basis(value, tuple(reversed(path))) if path else value), at


def _dynamic(written: str, token: re.Match[str]) -> Dynamic:
    width, divisibility = 32, 1
    for word in (token["said"] or "").split():
        if word in ("i32", "i64"):
            width = int(word[1:])
        elif (number := re.fullmatch(r"div=([1-9]\d*)", word)) is not None:
            divisibility = int(number[1])
        else:
            raise LayoutError(f"{written!r}: column {token.start() + 1}: {word!r} is not i32, i64 or div=N")
    return Dynamic(width, divisibility)
