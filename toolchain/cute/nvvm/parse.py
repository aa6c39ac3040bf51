"""Reads MLIR text at the base level."""

from __future__ import annotations

import bisect
import re
from functools import cache

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp, UnknownLoc
from xdsl.dialects.cf import Cf
from xdsl.dialects.llvm import LLVM
from xdsl.dialects.math import Math
from xdsl.dialects.scf import Scf
from xdsl.dialects.ub import UB
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from ...errors import SourceError
from . import location
from .dialect import NVVM
from .gpu import GPU


def base_level() -> Context:
    """The dialects of the base level."""
    made = Context()
    for dialect in (Builtin, Arith, Math, Scf, Cf, UB, GPU, LLVM, NVVM):
        made.load_dialect(dialect)
    return made


@cache
def context() -> Context:
    return base_level()


def parse(text: str, name: str = "<kernel>") -> ModuleOp:
    """The module in MLIR text, verified. Raises SourceError that begins with file:line:col, or names the file."""
    return parse_with(context(), text, name)


def parse_with(dialects: Context, text: str, name: str) -> ModuleOp:
    """`parse` with other dialects."""
    try:
        module = _Placing(dialects, text, name).parse_module()
    except ParseError as error:
        line, column = _place(text, error.span.start)
        rest = error.msg == "Could not parse entire input!"
        message = "an operation is expected here, such as a module" if rest else error.msg
        raise SourceError(f"{name}:{line}:{column}: {message}") from error
    except VerifyException as error:
        raise SourceError(f"{name}: {error}") from error
    location.verify(module, name)
    return module


class _Placing(Parser):
    """A parser that gives each operation its place, unless the text says where it comes from."""

    def __init__(self, dialects: Context, text: str, name: str) -> None:
        super().__init__(dialects, text, name)
        self._name = name
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]  # where each begins

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            line = bisect.bisect_right(self._lines, start)
            op.location = location.at(self._name, line, start - self._lines[line - 1] + 1)
        return op


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1
