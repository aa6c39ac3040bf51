"""From the base level to LLVM IR text: the functions and globals of a module."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from ...errors import SourceError
from .dialect import GpuModuleOp
from .llvm_function import Function, Module
from .llvm_instructions import write
from .llvm_types import quoted, type_text


def to_llvm_ir(module: ModuleOp) -> str:
    """LLVM IR text of all functions and globals of a module and of its gpu.modules. Raises SourceError that names the
    operation which has no such form."""
    written = Module()
    for op in _members(module):
        match op:
            case llvm.FuncOp():
                written.functions.append(Function(op, written, write).text())
            case llvm.GlobalOp():
                written.functions.append(_global(op))
            case _:
                raise SourceError(f"{op.name} cannot stand in a module that is lowered to LLVM IR")
    head = ['target triple = "nvptx64-nvidia-cuda"']
    return "\n".join([*head, *written.functions, *sorted(written.declared)]) + "\n"


def _members(module: ModuleOp) -> Iterator[Operation]:
    for op in module.body.ops:
        if isinstance(op, GpuModuleOp | ModuleOp):
            yield from op.body.ops
        else:
            yield op


def _global(op: llvm.GlobalOp) -> str:
    space, alignment = op.addr_space.value.data, op.alignment
    linkage = "external" if op.linkage.linkage.data == "external" else "internal"
    value = (
        "" if linkage == "external" else f" c{quoted(op.value.data)}" if isinstance(op.value, StringAttr) else " undef"
    )
    aligned = f", align {alignment.value.data}" if alignment else ""
    kind = "constant" if op.constant else "global"
    return f"@{op.sym_name.data} = {linkage} addrspace({space}) {kind} {type_text(op.global_type)}{value}{aligned}"
