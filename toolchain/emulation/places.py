"""A traceback that ends at a line of a kernel, which Python has never run."""

from __future__ import annotations

import ast
from pathlib import Path
from types import TracebackType

from ..errors import SanitizerError


def at_source(error: BaseException) -> BaseException:
    """The error with a traceback of one entry, the line of the kernel's source that it is about, if it names one.
    Whoever raises it adds the entries of the callers before it."""
    place = error.place if isinstance(error, SanitizerError) else None
    entry = None if place is None else _entry(*place)
    return error if entry is None else error.with_traceback(entry)


def _entry(file: str, line: int, column: int) -> TracebackType | None:
    """A traceback's entry for a place: that of code which raises there."""
    function, first, last = _around(file, line, column)
    raising = ast.Raise(ast.Name("StopIteration", ast.Load()))
    for node in ast.walk(raising):
        position = {"lineno": line, "end_lineno": line, "col_offset": first, "end_col_offset": last}
        vars(node).update(position)
    code = compile(ast.Module([raising], []), file, "exec").replace(co_name=function)
    try:
        exec(code, {})
    except StopIteration as stop:
        return None if stop.__traceback__ is None else stop.__traceback__.tb_next
    return None


def _around(file: str, line: int, column: int) -> tuple[str, int, int]:
    """The innermost function that a line belongs to, and the columns of the expression that begins there; "kernel" and
    none where the source cannot be read."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return "kernel", -1, -1
    name, started, first, last = "kernel", 0, -1, -1
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and started <= node.lineno <= line <= (node.end_lineno or 0):
            name, started = node.name, node.lineno
        if isinstance(node, ast.expr) and node.lineno == line == node.end_lineno and node.col_offset == column - 1:
            first, last = node.col_offset, max(last, node.end_col_offset or -1)
    return name, first, last
