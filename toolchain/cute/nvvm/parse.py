"""Reads MLIR text at the base level."""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.cf import Cf
from xdsl.dialects.llvm import LLVM
from xdsl.dialects.math import Math
from xdsl.dialects.scf import Scf
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from ...errors import SourceError
from .dialect import GPU, NVVM


def base_level() -> Context:
    """The dialects of the base level."""
    made = Context()
    for dialect in (Builtin, Arith, Math, Scf, Cf, GPU, LLVM, NVVM):
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
        module = Parser(dialects, text, name).parse_module()
        module.verify()
    except ParseError as error:
        line, column = _place(text, error)
        raise SourceError(f"{name}:{line}:{column}: {error.msg}") from error
    except VerifyException as error:
        raise SourceError(f"{name}: {error}") from error
    return module


def _place(text: str, error: ParseError) -> tuple[int, int]:
    before = text[: error.span.start]
    return before.count("\n") + 1, error.span.start - (before.rfind("\n") + 1) + 1
