"""`cute-nvgpu-to-nvvm`: instructions of `cute_nvgpu.arch` become `llvm.inline_asm` of their PTX text."""

from __future__ import annotations

import functools

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import DenseArrayBase, IntAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...errors import SourceError
from ..nvgpu import ArchOp
from ..nvgpu.descriptor_ops import LARGEST, InstructionDescriptorOp, SmemDescriptorOp
from ..nvvm.emit import Emitter
from ..nvvm.location import blamed

OURS = (ArchOp, SmemDescriptorOp, InstructionDescriptorOp)
SHARED = llvm.LLVMPointerType(IntAttr(3))
TARGET = "cute.target"  # a module's attribute: what it is compiled for, such as "sm_90a"


def nvgpu_to_nvvm(module: ModuleOp) -> None:
    """Lowers in place. Raises SourceError for an instruction that the module's target, if one is given, lacks."""
    builder = Emitter(InsertPoint.at_end(module.body.block))
    for op in [op for op in module.walk() if isinstance(op, OURS)]:
        builder.insertion_point = InsertPoint.before(op)
        match op:
            case ArchOp():
                _lower(op, builder)
            case SmemDescriptorOp():
                _describe(op, builder)
            case InstructionDescriptorOp():
                Rewriter.replace_op(op, arith.ConstantOp(IntegerAttr(op.word, i32)))


def _lower(op: ArchOp, builder: Emitter) -> None:
    with blamed("cute-nvgpu-to-nvvm", op):
        _check_target(op)
    text, constraints = op.asm
    said: dict[str, Attribute] = {"asm_string": StringAttr(text), "constraints": StringAttr(constraints)}
    if op.ROW.memory:
        said["constraints"] = StringAttr(",".join(filter(None, [constraints, "~{memory}"])))
        said["has_side_effects"] = UnitAttr()
    kinds = tuple(result.type for result in op.results)
    packed = kinds if len(kinds) < 2 else (_struct(kinds),)
    args = [_address(arg, builder) for arg in op.operands]
    call = builder.make(llvm.InlineAsmOp, args, packed, said)
    results: list[SSAValue] = list(call.results)
    if len(kinds) > 1:
        results = [
            builder.make(llvm.ExtractValueOp, call.results, (kind,), {"position": _position(i)}).results[0]
            for i, kind in enumerate(kinds)
        ]
    Rewriter.replace_op(op, [], results)


def _describe(op: SmemDescriptorOp, builder: Emitter) -> None:
    """The address in units of 16 bytes, below the fields that are known."""
    near = builder.binary(arith.AndIOp, _address(op.start, builder), builder.number(LARGEST))
    units = builder.binary(arith.ShRUIOp, near, builder.number(4))
    wide = builder.once((arith.ExtUIOp, units), arith.ExtUIOp, (units,), i64)
    Rewriter.replace_op(op, [], [builder.binary(arith.OrIOp, wide, builder.number(op.fields, i64))])


@functools.cache
def _struct(kinds: tuple[Attribute, ...]) -> Attribute:
    return llvm.LLVMStructType.from_type_list(kinds)


@functools.cache
def _position(number: int) -> Attribute:
    return DenseArrayBase.from_list(i64, [number])


def _check_target(op: ArchOp) -> None:
    """The target of the nearest module that says one has the instruction."""
    found: Operation | None = op
    while found is not None:
        if isinstance(target := found.attributes.get(TARGET), StringAttr):
            if not op.ROW.runs_on(target.data):
                raise SourceError(f"{target.data} has no such instruction: {op.ROW.where} do", hint="another target")
            return
        found = found.parent_op()


def _address(value: SSAValue, builder: Emitter) -> SSAValue:
    """A pointer to shared memory as the 32-bit address that instructions take."""
    if value.type != SHARED:
        return value
    return builder.once(("address", value), llvm.PtrToIntOp, (value,), i32)
