"""`cute-nvgpu-to-nvvm`: instructions of `cute_nvgpu.arch` become `llvm.inline_asm` of their PTX text."""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import DenseArrayBase, IntAttr, IntegerAttr, IntegerType, ModuleOp, StringAttr, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...errors import SourceError
from ..nvgpu import ArchOp
from ..nvgpu.descriptor_ops import LARGEST, InstructionDescriptorOp, SmemDescriptorOp
from ..nvvm.location import blamed

SHARED = llvm.LLVMPointerType(IntAttr(3))
TARGET = "cute.target"  # a module's attribute: what it is compiled for, such as "sm_90a"


def nvgpu_to_nvvm(module: ModuleOp) -> None:
    """Lowers in place. Raises SourceError for an instruction that the module's target, if one is given, lacks."""
    for op in list(module.walk()):
        match op:
            case ArchOp():
                _lower(op)
            case SmemDescriptorOp():
                _describe(op)
            case InstructionDescriptorOp():
                Rewriter.replace_op(op, arith.ConstantOp(IntegerAttr(op.word, i32)))
            case _:
                pass


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


def _describe(op: SmemDescriptorOp) -> None:
    """The address in units of 16 bytes, below the fields that are known."""
    builder = Builder(InsertPoint.before(op))

    def number(value: int, kind: IntegerType = i32) -> SSAValue:
        return builder.insert(arith.ConstantOp(IntegerAttr(value, kind))).result

    near = builder.insert(arith.AndIOp(_address(op.start, builder), number(LARGEST))).result
    units = builder.insert(arith.ShRUIOp(near, number(4))).result
    wide = builder.insert(arith.ExtUIOp(units, i64)).result
    Rewriter.replace_op(op, arith.OrIOp(wide, number(op.fields, i64)))


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
