"""`cute-nvgpu-to-nvvm`: instructions of `cute_nvgpu.arch` become `llvm.inline_asm` of their PTX text."""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, IntAttr, ModuleOp, i32, i64
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..nvgpu import ArchOp

SHARED = llvm.LLVMPointerType(IntAttr(3))


def nvgpu_to_nvvm(module: ModuleOp) -> None:
    """Lowers in place."""
    for op in list(module.walk()):
        if isinstance(op, ArchOp):
            _lower(op)


def _lower(op: ArchOp) -> None:
    builder = Builder(InsertPoint.before(op))
    args = [_address(arg, builder) for arg in op.args]
    text, constraints = op.asm
    if op.ROW.memory:
        constraints = ",".join(filter(None, [constraints, "~{memory}"]))
    kinds = [result.type for result in op.res]
    packed = kinds if len(kinds) < 2 else [llvm.LLVMStructType.from_type_list(kinds)]
    call = builder.insert(llvm.InlineAsmOp(text, constraints, args, packed, has_side_effects=op.ROW.memory))
    results: list[SSAValue] = list(call.results)
    if len(kinds) > 1:
        results = [
            builder.insert(llvm.ExtractValueOp(DenseArrayBase.from_list(i64, [i]), call.results[0], kind)).res
            for i, kind in enumerate(kinds)
        ]
    Rewriter.replace_op(op, [], results)


def _address(value: SSAValue, builder: Builder) -> SSAValue:
    """A pointer to shared memory as the 32-bit address that instructions take."""
    if value.type != SHARED:
        return value
    return builder.insert(llvm.PtrToIntOp(value, i32)).output
