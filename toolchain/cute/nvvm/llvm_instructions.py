"""The operations of the base level in LLVM IR text: each becomes one instruction."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, llvm, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from .dialect import CALLS, ReadRegister
from .llvm_control import CONTROL
from .llvm_function import Function, Writer
from .llvm_ops import CASTS, COMPARISONS, FLOAT_COMPARISONS, INT_OPS, INTRINSICS
from .llvm_types import UnsupportedError, quoted, type_text


def write(f: Function, op: Operation) -> None:
    """Writes an operation. Raises UnsupportedError and SourceError."""
    kind = type(op)
    if (writer := WRITERS.get(kind)) is not None:
        writer(f, op)
    elif kind in INT_OPS:
        first, second = op.operands
        f.line(f"{INT_OPS[kind]} {f.typed(first)}, {f.name(second)}", op.results[0])
    elif kind in CASTS:
        f.line(f"{CASTS[kind]} {f.typed(op.operands[0])} to {type_text(op.results[0].type)}", op.results[0])
    elif kind in INTRINSICS:
        written = type_text(op.results[0].type).replace("float", "f32").replace("half", "f16")
        written = {"bf32": "bf16", "double": "f64", "bf16": "bf16"}.get(written, written)
        f.call(f"{INTRINSICS[kind]}.{written}", list(op.operands), op.results[0])
    elif isinstance(op, ReadRegister):
        f.call(op.intrinsic, [], op.results[0])
    elif isinstance(op, CALLS):
        f.module.declare("void", op.INTRINSIC, op.argument.split()[:1])
        f.line(f"call void @{op.INTRINSIC}({op.argument})")
    else:
        raise UnsupportedError("this operation has no form in LLVM IR here")


def _nothing(f: Function, op: Operation) -> None:
    """Written where it is used."""


def _cmpi(f: Function, op: Operation) -> None:
    assert isinstance(op, arith.CmpiOp)
    f.line(f"icmp {COMPARISONS[op.predicate.value.data]} {f.typed(op.lhs)}, {f.name(op.rhs)}", op.result)


def _cmpf(f: Function, op: Operation) -> None:
    assert isinstance(op, arith.CmpfOp)
    f.line(f"fcmp {FLOAT_COMPARISONS[op.predicate.value.data]} {f.typed(op.lhs)}, {f.name(op.rhs)}", op.result)


def _select(f: Function, op: Operation) -> None:
    f.line("select " + ", ".join(map(f.typed, op.operands)), op.results[0])


def _negf(f: Function, op: Operation) -> None:
    f.line(f"fneg {f.typed(op.operands[0])}", op.results[0])


def _index_cast(f: Function, op: Operation) -> None:
    here, there = (int(type_text(t)[1:]) for t in (op.operands[0].type, op.results[0].type))
    if here != there:
        how = "sext" if there > here else "trunc"
        f.line(f"{how} {f.typed(op.operands[0])} to i{there}", op.results[0])


def _gep(f: Function, op: Operation) -> None:
    assert isinstance(op, llvm.GEPOp)
    dynamic = iter(op.ssa_indices)
    indices = [
        f.typed(next(dynamic)) if number == llvm.GEP_USE_SSA_VAL else f"i32 {number}"
        for number in op.rawConstantIndices.iter_values()
    ]
    f.line(f"getelementptr {type_text(op.elem_type)}, {f.typed(op.ptr)}, {', '.join(indices)}", op.result)


def _aligned(op: Operation) -> str:
    found = op.properties.get("alignment")
    return f", align {found.value.data}" if isinstance(found, IntegerAttr) else ""


def _load(f: Function, op: Operation) -> None:
    f.line(f"load {type_text(op.results[0].type)}, {f.typed(op.operands[0])}{_aligned(op)}", op.results[0])


def _store(f: Function, op: Operation) -> None:
    f.line(f"store {f.typed(op.operands[0])}, {f.typed(op.operands[1])}{_aligned(op)}")


def _alloca(f: Function, op: Operation) -> None:
    assert isinstance(op, llvm.AllocaOp)
    f.line(f"alloca {type_text(op.elem_type)}, {f.typed(op.size)}{_aligned(op)}", op.res)


def _inline_asm(f: Function, op: Operation) -> None:
    """Convergent: an instruction of a whole warp must neither move into a branch nor be doubled for its two sides."""
    assert isinstance(op, llvm.InlineAsmOp)
    kind = type_text(op.res.type) if op.res else "void"
    effect = "sideeffect " if op.has_side_effects is not None else ""
    code, constraints = quoted(op.asm_string.data), quoted(op.constraints.data)
    operands = ", ".join(map(f.typed, op.operands))
    f.line(f"call {kind} asm {effect}{code}, {constraints}({operands}) convergent nounwind", op.res)


def _extract(f: Function, op: Operation) -> None:
    assert isinstance(op, llvm.ExtractValueOp)
    f.line(f"extractvalue {f.typed(op.container)}, {', '.join(map(str, op.position.iter_values()))}", op.res)


def _insert(f: Function, op: Operation) -> None:
    assert isinstance(op, llvm.InsertValueOp)
    where = ", ".join(map(str, op.position.iter_values()))
    f.line(f"insertvalue {f.typed(op.container)}, {f.typed(op.value)}, {where}", op.res)


def _call(f: Function, op: Operation) -> None:
    assert isinstance(op, llvm.CallOp) and op.callee is not None
    kind = "void" if op.returned is None else type_text(op.returned.type)
    f.line(f"call {kind} @{op.callee.string_value()}({', '.join(map(f.typed, op.args))})", op.returned)


def _call_intrinsic(f: Function, op: Operation) -> None:
    assert isinstance(op, llvm.CallIntrinsicOp)
    f.call(op.intrin.data, list(op.args), op.ress)


WRITERS: Mapping[type[Operation], Writer] = {
    **CONTROL,
    arith.ConstantOp: _nothing, llvm.ConstantOp: _nothing, llvm.ZeroOp: _nothing, llvm.UndefOp: _nothing,
    llvm.AddressOfOp: _nothing, scf.YieldOp: _nothing, scf.ConditionOp: _nothing, arith.CmpiOp: _cmpi,
    arith.CmpfOp: _cmpf, arith.SelectOp: _select, llvm.SelectOp: _select, arith.NegfOp: _negf,
    arith.IndexCastOp: _index_cast, llvm.GEPOp: _gep, llvm.LoadOp: _load, llvm.StoreOp: _store,
    llvm.AllocaOp: _alloca, llvm.InlineAsmOp: _inline_asm, llvm.ExtractValueOp: _extract, llvm.InsertValueOp: _insert,
    llvm.CallIntrinsicOp: _call_intrinsic, llvm.CallOp: _call,
}  # fmt: skip
