"""A safe language for `where` and `grid` of entries: integers, names, + - * // %, comparisons, cdiv, min, max."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping

from ..errors import UsageError

LONGEST = 500  # characters of an expression: three times the longest in use, and too few to nest beyond Python's limit

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


_FUNCTIONS: dict[str, Callable[..., int]] = {"cdiv": cdiv, "min": min, "max": max}


@functools.cache
def _parse(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise UsageError(f"{text[:40]!r}... is an expression of {len(text)} characters, more than {LONGEST}")
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"{text!r} is not an expression: {error.msg}") from error


@functools.cache
def expression_names(text: str) -> frozenset[str]:
    """The names that an expression reads, without functions."""
    return frozenset(n.id for n in ast.walk(_parse(text)) if isinstance(n, ast.Name)) - _FUNCTIONS.keys()


def evaluate(text: str, names: Mapping[str, int]) -> int:
    """The value of an expression over `names`. Raises UsageError for anything outside the small language, and for a
    division by zero."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](value(left), value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return _COMPARE[type(op)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                numbers = [value(arg) for arg in args]
                try:
                    return _FUNCTIONS[name](*numbers)
                except TypeError as error:  # a wrong number of arguments
                    raise UsageError(f"{text!r}: {ast.unparse(node)!r}: {error}") from error
            case _:
                raise UsageError(f"{text!r}: cannot evaluate {ast.unparse(node)!r}")

    try:
        return value(_parse(text))
    except ZeroDivisionError as error:
        used = {name: names[name] for name in sorted(expression_names(text) & names.keys())}
        sizes = ", ".join(f"{name}={number}" for name, number in used.items())
        raise UsageError(f"{text!r} divides by zero" + (f" where {sizes}" if sizes else "")) from error
