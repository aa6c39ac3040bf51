"""Where an operation was written: file:line:col, for errors of the verifier and of passes."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ...errors import SourceError, UsageError


def at(name: str, line: int, column: int) -> FileLineColLoc:
    """A place in a file."""
    return FileLineColLoc(StringAttr(name), IntAttr(line), IntAttr(column))


def place(op: Operation) -> str:
    """`file:line:col: ` of an operation, or of the nearest one around it that has a place; else nothing."""
    found: Operation | None = op
    while found is not None:
        if isinstance(where := found.location, FileLineColLoc):
            return f"{where.filename.data}:{where.line.data}:{where.column.data}: "
        found = found.parent_op()
    return ""


def verify(module: ModuleOp, name: str = "") -> None:
    """Raises SourceError with the place of an operation that is wrong."""
    try:
        module.verify()
    except VerifyException as error:
        raise SourceError(f"{_culprit(module) or f'{name}: '}{error}") from error


def _culprit(module: ModuleOp) -> str:
    """The place of the first operation that does not verify by itself."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException:
            return place(op)
    return ""


@contextlib.contextmanager
def blamed(stage: str, op: Operation) -> Generator[None]:
    """Errors within name the pass, the operation and its place."""
    try:
        yield
    except (SourceError, UsageError, VerifyException) as error:
        hint = error.hint if isinstance(error, SourceError | UsageError) else None
        said = str(error.args[0]).removeprefix(f"{stage}: ")
        named = said if said.startswith(op.name) else f"{op.name}: {said}"
        raise SourceError(f"{place(op)}{stage}: {named}", hint=hint) from error
