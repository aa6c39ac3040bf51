"""Printing in a kernel: CUDA's `vprintf`, which takes a format and the address of the numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i8, i32
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ....errors import SourceError
from ...dialect.ops import GetScalarsOp
from ...dialect.sugar import PrintOp
from ...dialect.types import CuteType
from ...nvvm.dialect import GpuModuleOp
from .place import Placed

POINTER = llvm.LLVMPointerType()
VPRINTF = "vprintf"


def print_value(op: PrintOp, builder: Placed) -> list[SSAValue]:
    kind = op.arg.type
    assert isinstance(kind, CuteType)
    text, unknown = re.subn(r"[?](\{[^}]*\})?", "%d", kind.write(kind.data))
    text += "\n"
    home = _module(op)
    scalars = builder.insert(GetScalarsOp(op.arg, only_dynamic=True)).scalars if unknown else []
    if len(scalars) != unknown:
        raise SourceError(f"cute.print: {kind} has {unknown} numbers to print, and {len(scalars)} are found in it")
    name = _text(home, text, op)
    address = builder.insert(llvm.AddressOfOp(name, POINTER)).result
    call = llvm.CallOp(VPRINTF, address, _arguments(op, scalars, builder), return_type=i32)
    builder.insert(call)
    return []


def _arguments(op: PrintOp, scalars: Sequence[SSAValue], builder: Placed) -> SSAValue:
    """The address of the numbers, side by side in a slot at the function's beginning."""
    if not scalars:
        return builder.insert(llvm.ZeroOp(result_types=[POINTER])).res
    function: Operation | None = op
    while not isinstance(function, llvm.FuncOp):
        function = function.parent_op()
        if function is None:
            raise SourceError("it stands in no llvm.func")
    head = Placed(op, InsertPoint.at_start(function.body.blocks[0]))
    one = head.insert(arith.ConstantOp(IntegerAttr(1, i32))).result
    slot = head.insert(llvm.AllocaOp(one, llvm.LLVMArrayType(len(scalars), i32), alignment=8)).res
    for number, value in enumerate(scalars):
        here = slot if number == 0 else builder.insert(llvm.GEPOp(slot, [number], i32, result_type=POINTER)).result
        builder.insert(llvm.StoreOp(value, here))
    return slot


def _module(op: Operation) -> GpuModuleOp | ModuleOp:
    found: Operation | None = op
    while not isinstance(found, GpuModuleOp | ModuleOp):
        found = found.parent_op() if found else None
        if found is None:
            raise SourceError("it stands in no module")
    return found


def _text(home: GpuModuleOp | ModuleOp, text: str, op: PrintOp) -> str:
    """The symbol of a text in a module; the module also declares `vprintf`."""
    block = home.body.blocks[0]
    globals_ = [member for member in block.ops if isinstance(member, llvm.GlobalOp)]
    data = StringAttr(text + "\0")
    for member in globals_:
        if member.value == data:
            return member.sym_name.data
    name = f"printed_{sum(member.sym_name.data.startswith('printed_') for member in globals_)}"
    head = Placed(op, InsertPoint.at_start(block))
    size = len(text.encode()) + 1
    head.insert(llvm.GlobalOp(llvm.LLVMArrayType(size, i8), name, "internal", 0, constant=True, value=data))
    if not any(isinstance(member, llvm.FuncOp) and member.sym_name.data == VPRINTF for member in block.ops):
        kind = llvm.LLVMFunctionType([POINTER, POINTER], i32)
        head.insert(llvm.FuncOp(VPRINTF, kind, llvm.LinkageAttr("external")))
    return name
