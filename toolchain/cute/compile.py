"""From MLIR text with operations of `cute` to PTX: parse, `cute-lower`, and the back end."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr

from .nvvm import compile_to_ptx
from .nvvm.emit import uncollected
from .parse import parse
from .passes import PASSES, PIPELINE, TARGET


def lower(text: str, name: str = "<kernel>", arch: str = "") -> ModuleOp:
    """The module of a text at the base level: no operation of `cute` is left. Raises SourceError."""
    module = parse(text, name)
    return lower_module(module, arch)


@uncollected()
def lower_module(module: ModuleOp, arch: str = "") -> ModuleOp:
    """Lowers a module with operations of `cute` in place, and returns it. Raises SourceError, also for an instruction
    that the architecture does not have, if one is given."""
    if arch:
        module.attributes[TARGET] = StringAttr(arch)
    for name in PIPELINE:
        PASSES[name](module)
    return module


def to_ptx(text: str, arch: str, *, level: int = 3, name: str = "<kernel>") -> str:
    """PTX of the kernels in MLIR text for an architecture such as `sm_90a`. Raises as `lower` and `compile_to_ptx`."""
    return compile_to_ptx(lower(text, name, arch), arch, level=level, name=name)
