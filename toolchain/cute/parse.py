"""Reads MLIR text with operations of `cute`."""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import Func
from xdsl.ir import Dialect

from .dialect.atom_ops import ATOM_OPS
from .dialect.atom_types import ATOM_TYPES
from .dialect.tensor_ops import CUTE
from .nvgpu.arch import ARCH
from .nvgpu.descriptor_ops import DESCRIPTORS
from .nvvm.parse import base_level, parse_with

CUTE_NVGPU = Dialect("cute_nvgpu", [*ARCH.values(), *DESCRIPTORS, *ATOM_OPS], ATOM_TYPES)


@cache
def context() -> Context:
    """The dialects that may stand beside `cute`: those of the base level, and `func`."""
    made = base_level()
    for dialect in (Func, CUTE, CUTE_NVGPU):
        made.load_dialect(dialect)
    return made


def parse(text: str, name: str = "<kernel>") -> ModuleOp:
    """The module in MLIR text, verified. Raises SourceError that begins with file:line:col, or names the file."""
    return parse_with(context(), text, name)
