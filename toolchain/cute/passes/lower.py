"""`cute-lower`: every number of `cute` values that the kernel computes becomes `arith`; no `cute` operation is left.

A value of `cute` is a value of the layout algebra whose unknown leaves are bound to the kernel's own numbers. Each
operation is the algebra's function on such values, which emits the arithmetic.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from ...errors import SourceError
from ..dialect.ops import AlgebraOp, CompareOp, GetScalarsOp, MakeOp, StaticOp
from ..dialect.sugar import LeavesOp, PrintOp, SugarOp
from ..dialect.tensor_ops import CopyAtomCallOp, CopyOp, GemmOp, MemoryOp, MmaAtomCallOp
from ..dialect.types import CuteType, IntTupleType
from ..dialect.values import dynamic_leaves
from ..layout import Dynamic
from ..nvvm.emit import Emitter
from ..nvvm.index import Index, as_value, index
from ..nvvm.location import blamed
from .bound import with_numbers
from .copies import lower_copy
from .memory import Lowering, lower_memory
from .products import lower_product
from .registers import Registers

SUGARED = (SugarOp, LeavesOp, PrintOp)
CUTE = (AlgebraOp, CompareOp, GetScalarsOp, MakeOp, MemoryOp, StaticOp)


def lower(module: ModuleOp) -> None:
    """Lowers in place. Raises SourceError if a value of `cute` comes from, or goes to, an operation of another
    dialect."""
    for op in module.walk():
        if isinstance(op, SUGARED):
            with blamed("cute-lower", op):
                raise SourceError("it is left", hint="run cute-desugar before")
    if not any(isinstance(op, CUTE) for op in module.walk()):
        return
    known: dict[SSAValue, CuteType] = {}
    # One builder for all: arithmetic on numbers of two operations stands behind both.
    builder = Emitter(InsertPoint.at_end(module.body.block))
    to = Lowering(builder, Registers(builder), known, lambda value: _of(value, known))
    lowered: list[Operation] = []
    for block in module.body.blocks:
        _lower_block(block, to, lowered)
    for op in reversed(lowered):
        Rewriter.erase_op(op)


def _lower_block(block: Block, to: Lowering, lowered: list[Operation]) -> None:
    """Lowers what stands in a block, and in blocks within it. Values stay in registers as long as it runs."""
    for op in list(block.ops):
        to.builder.insertion_point, to.builder.location = InsertPoint.before(op), op.location
        if isinstance(op, CUTE):
            with blamed("cute-lower", op):
                _lower(op, to)
            lowered.append(op)
            continue
        if any(isinstance(value.type, CuteType) for value in op.operands):
            with blamed("cute-lower", op):
                raise SourceError(f"{op.name} takes a value of cute", hint="take its numbers: cute.get_scalars")
        if isinstance(op, llvm.ReturnOp):
            to.registers.forget()
        elif op.regions or op.has_trait(IsTerminator):
            to.registers.flush_all()
        for region in op.regions:
            for inner in region.blocks:
                _lower_block(inner, to, lowered)


def _lower(op: Operation, to: Lowering) -> None:
    match op:
        case StaticOp():
            assert isinstance(op.res.type, CuteType)
            to.known[op.res] = op.res.type
        case MakeOp():
            to.known[op.res] = _filled(op, to)
        case AlgebraOp():
            numbers = [int(number) for number in op.numbers.iter_values()] if op.numbers else []
            to.known[op.res] = op.inferred([to.find(arg) for arg in op.args], numbers)
        case GetScalarsOp():
            leaves = op.chosen(to.find(op.arg), op.only_dynamic is not None)
            for result, leaf in zip(op.scalars, leaves, strict=True):
                result.replace_all_uses_with(as_value(leaf, to.builder))
        case CompareOp():
            op.res.replace_all_uses_with(_compared(op, to.find(op.a), to.find(op.b), to.builder))
        case CopyOp() | CopyAtomCallOp():
            lower_copy(op, to)
        case GemmOp() | MmaAtomCallOp():
            lower_product(op, to)
        case _:
            if not lower_memory(op, to):
                raise AssertionError(op.name)


def _of(value: SSAValue, known: dict[SSAValue, CuteType]) -> CuteType:
    if (found := known.get(value)) is None:
        user = next(iter(value.uses)).operation
        raise SourceError(f"cute-lower: {user.name} takes a {value.type} that no operation of cute makes")
    return found


def _filled(op: MakeOp, to: Lowering) -> CuteType:
    """The type's value, with its unknown leaves bound to the operands from left to right."""
    kind = op.res.type
    assert isinstance(kind, CuteType)
    leaves = dynamic_leaves(kind)
    return with_numbers(kind, (_number(arg, leaf, to) for arg, leaf in zip(op.args, leaves, strict=True)))


def _number(value: SSAValue, leaf: Dynamic, to: Lowering) -> Any:
    if isinstance(value.type, IntTupleType):
        return to.find(value).data
    if leaf.width != 32:
        raise SourceError(
            f"{leaf}: a kernel addresses by numbers of 32 bits", hint="cute-expand-ops and cute-to-base lower others"
        )
    return index(value, to.builder, divisibility=leaf.divisibility)


def _compared(op: CompareOp, a: CuteType, b: CuteType, builder: Emitter) -> SSAValue:
    if (known := op.known) is not None:
        return builder.number(int(known), i1)
    predicate = "eq" if op.name == "cute.equal" else "slt"
    made: SSAValue | None = None
    for x, y in zip(GetScalarsOp.chosen(a, False), GetScalarsOp.chosen(b, False), strict=True):
        if not (isinstance(x, Index) or isinstance(y, Index)):
            continue  # known, and true: else the whole would be known to be false
        one = builder.compare(predicate, as_value(x, builder), as_value(y, builder))
        made = one if made is None else builder.binary(arith.AndIOp, made, one)
    assert made is not None
    return made
