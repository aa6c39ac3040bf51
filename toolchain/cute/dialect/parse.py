"""Reads MLIR text with operations of `cute`."""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf

from ..nvvm.parse import parse_with
from .ops import CUTE


@cache
def context() -> Context:
    """The dialects that may stand beside `cute`."""
    made = Context()
    for dialect in (Builtin, Func, Arith, Scf, CUTE):
        made.load_dialect(dialect)
    return made


def parse(text: str, name: str = "<kernel>") -> ModuleOp:
    """The module in MLIR text, verified. Raises SourceError that begins with file:line:col, or names the file."""
    return parse_with(context(), text, name)
