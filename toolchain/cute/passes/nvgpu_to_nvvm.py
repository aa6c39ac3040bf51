"""`cute-nvgpu-to-nvvm`: instructions of `cute_nvgpu.arch` become `llvm.inline_asm` of their PTX text."""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, IntAttr, ModuleOp, StringAttr, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...errors import SourceError
from ..nvgpu import ArchOp
from ..nvvm.location import blamed

SHARED = llvm.LLVMPointerType(IntAttr(3))
TARGET = "cute.target"  # a module's attribute: what it is compiled for, such as "sm_90a"


def nvgpu_to_nvvm(module: ModuleOp) -> None:
    """Lowers in place. Raises SourceError for an instruction that the module's target, if one is given, lacks."""
    for op in list(module.walk()):
        if isinstance(op, ArchOp):
            _lower(op)


def _lower(op: ArchOp) -> None:
    with blamed("cute-nvgpu-to-nvvm", op):
        _check_target(op)
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


def _check_target(op: ArchOp) -> None:
    """The target of the nearest module that says one has the instruction."""
    found: Operation | None = op
    while found is not None:
        if isinstance(target := found.attributes.get(TARGET), StringAttr):
            if not op.ROW.runs_on(target.data):
                raise SourceError(f"{target.data} has no such instruction: {op.ROW.where} do", hint="another target")
            return
        found = found.parent_op()


def _address(value: SSAValue, builder: Builder) -> SSAValue:
    """A pointer to shared memory as the 32-bit address that instructions take."""
    if value.type != SHARED:
        return value
    return builder.insert(llvm.PtrToIntOp(value, i32)).output
