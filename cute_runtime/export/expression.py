"""The expressions of entries, `where` and `grid`, in C++."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from toolchain.errors import UsageError

_INFIX: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_CALLED: Mapping[type[ast.AST], str] = {ast.FloorDiv: "floordiv", ast.Mod: "floormod"}


def to_cpp(text: str, names: Mapping[str, str | int]) -> str:
    """An expression over `names`, which maps each name to its C++ text, such as `M` to "M" and a constant to its value.
    Its value is the one of `entry.evaluate`. Raises UsageError for anything outside the small language."""

    def cpp(node: ast.expr) -> str:
        match node:
            case ast.Constant(value=int(number)):
                return str(number)
            case ast.Name(id=name) if name in names:
                return str(names[name])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _INFIX:
                return f"({cpp(left)} {_INFIX[type(op)]} {cpp(right)})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _CALLED:
                return f"{_CALLED[type(op)]}({cpp(left)}, {cpp(right)})"
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _INFIX:
                return f"({cpp(left)} {_INFIX[type(op)]} {cpp(right)})"
            case ast.Call(func=ast.Name(id="cdiv"), args=[left, right], keywords=[]):
                return f"cdiv({cpp(left)}, {cpp(right)})"
            case ast.Call(func=ast.Name(id=("min" | "max") as name), args=[_, _, *_] as args, keywords=[]):
                return f"std::{name}<std::int64_t>({{{', '.join(cpp(arg) for arg in args)}}})"
            case _:
                raise UsageError(f"{text!r}: cannot write {ast.unparse(node)!r} in C++")

    try:
        return _without_parentheses(cpp(ast.parse(text, mode="eval").body))
    except SyntaxError as error:
        raise UsageError(f"{text!r} is not an expression: {error.msg}") from error


def _without_parentheses(text: str) -> str:
    """Without the outermost pair, if one encloses it all."""
    depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and position < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text
