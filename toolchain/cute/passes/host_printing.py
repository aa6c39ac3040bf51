"""What `cute.print` becomes in `cute-to-base`: `gpu.printf` in a kernel, and a call of C's `printf` elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr, i8, i32
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ...errors import SourceError
from ..dialect.sugar import PrintOp
from ..dialect.types import CuteType
from ..dialect.values import dynamic_leaves
from ..nvvm.dialect import GpuModuleOp
from ..nvvm.gpu import GpuLaunchOp, GpuPrintfOp
from .desugar.place import Placed

POINTER = llvm.LLVMPointerType()
UNKNOWN = re.compile(r"[?](\{[^}]*\})?")


def format_of(kind: CuteType) -> str:
    """The text of a value with a place for each number that is not known, and a new line."""
    widths = iter(["%lld" if leaf.width == 64 else "%d" for leaf in dynamic_leaves(kind)])
    return UNKNOWN.sub(lambda _: next(widths), kind.write(kind.data)) + "\n"


def print_value(op: PrintOp, kind: CuteType, builder: Placed, numbers: Sequence[SSAValue]) -> None:
    """Prints a value whose unknown numbers these are. Raises SourceError outside of a module."""
    text, around = format_of(kind), op.parent_op()
    while around is not None and not isinstance(around, ModuleOp):
        if isinstance(around, GpuModuleOp | GpuLaunchOp):
            builder.insert(GpuPrintfOp(text, numbers))
            return
        around = around.parent_op()
    if around is None:
        raise SourceError("it stands in no module")
    name = _text(around, text, op)
    array = llvm.LLVMArrayType(len(text.encode()) + 1, i8)
    start = builder.insert(llvm.AddressOfOp(name, POINTER)).result
    first = builder.insert(llvm.GEPOp(start, [0, 0], array, result_type=POINTER)).result
    kinds = llvm.LLVMFunctionType([POINTER], i32, is_variadic=True)
    builder.insert(llvm.CallOp("printf", first, *numbers, return_type=i32, var_callee_type=kinds))


def _text(module: ModuleOp, text: str, op: Operation) -> str:
    """The symbol of a text in a module, which also declares `printf`."""
    block = module.body.block
    names = {member.sym_name.data for member in block.ops if isinstance(member, llvm.FuncOp | llvm.GlobalOp)}
    name = next(f"printfFormat_{n}" for n in range(len(names) + 1) if f"printfFormat_{n}" not in names)
    head = Placed(op, InsertPoint.at_start(block))
    if "printf" not in names:
        kind = llvm.LLVMFunctionType([POINTER], i32, is_variadic=True)
        head.insert(llvm.FuncOp("printf", kind, llvm.LinkageAttr("external")))
    size = len(text.encode()) + 1
    data = StringAttr(text + "\0")
    head.insert(llvm.GlobalOp(llvm.LLVMArrayType(size, i8), name, "internal", 0, constant=True, value=data))
    return name
