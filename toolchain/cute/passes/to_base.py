"""`cute-to-base`: every number of `cute` values that the kernel computes becomes `arith`; no `cute` operation is left.

A value of `cute` is a value of the layout algebra whose unknown leaves are bound to the kernel's own numbers. Each
operation is the algebra's function on such values, which emits the arithmetic.
"""

from __future__ import annotations

from typing import Any

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...errors import SourceError
from ..dialect.ops import AlgebraOp, CompareOp, GetScalarsOp, MakeOp, StaticOp
from ..dialect.tensor_ops import MemoryOp
from ..dialect.types import CuteType
from ..layout import Dynamic, Layout
from ..layout import tuples as nested
from ..nvvm.index import Index, as_value, index
from ..nvvm.location import blamed
from .memory import lower_memory

CUTE = (AlgebraOp, CompareOp, GetScalarsOp, MakeOp, MemoryOp, StaticOp)


def to_base(module: ModuleOp) -> None:
    """Lowers in place. Raises SourceError if a value of `cute` comes from, or goes to, an operation of another
    dialect."""
    known: dict[SSAValue, CuteType] = {}
    lowered = [op for op in module.walk() if isinstance(op, CUTE)]
    if not lowered:
        return
    # One builder for all: arithmetic on numbers of two operations stands behind both.
    builder = Builder(InsertPoint.before(lowered[0]))
    for op in lowered:
        builder.insertion_point = InsertPoint.before(op)
        with blamed("cute-to-base", op):
            _lower(op, known, builder)
    for op in module.walk():
        if not isinstance(op, CUTE) and any(isinstance(value.type, CuteType) for value in op.operands):
            with blamed("cute-to-base", op):
                raise SourceError(f"{op.name} takes a value of cute", hint="take its numbers: cute.get_scalars")
    for op in reversed(lowered):
        Rewriter.erase_op(op)


def _lower(op: Operation, known: dict[SSAValue, CuteType], builder: Builder) -> None:
    match op:
        case MemoryOp():
            lower_memory(op, known, lambda value: _of(value, known, op), builder)
        case StaticOp():
            assert isinstance(op.res.type, CuteType)
            known[op.res] = op.res.type
        case MakeOp():
            known[op.res] = _filled(op, builder)
        case AlgebraOp():
            numbers = [int(number) for number in op.numbers.iter_values()] if op.numbers else []
            known[op.res] = op.inferred([_of(arg, known, op) for arg in op.args], numbers)
        case GetScalarsOp():
            leaves = op.chosen(_of(op.arg, known, op), op.only_dynamic is not None)
            for result, leaf in zip(op.scalars, leaves, strict=True):
                result.replace_all_uses_with(as_value(leaf, builder))
        case CompareOp():
            op.res.replace_all_uses_with(_compared(op, _of(op.a, known, op), _of(op.b, known, op), builder))
        case _:
            raise AssertionError(op.name)


def _of(value: SSAValue, known: dict[SSAValue, CuteType], user: Operation) -> CuteType:
    if (found := known.get(value)) is None:
        raise SourceError(f"cute-to-base: {user.name} takes a {value.type} that no operation of cute makes")
    return found


def _filled(op: MakeOp, builder: Builder) -> CuteType:
    """The type's value, with its unknown leaves bound to the operands from left to right."""
    kind = op.res.type
    assert isinstance(kind, CuteType)
    numbers = iter(op.args)

    def bound(leaf: Any) -> Any:
        if not isinstance(leaf, Dynamic):
            return leaf
        return index(next(numbers), builder, divisibility=leaf.divisibility)

    if isinstance(kind.data, tuple) and any(isinstance(part, Layout) for part in kind.data):
        parts = [
            part and Layout(nested.transform(bound, part.shape), nested.transform(bound, part.stride))
            for part in kind.data
        ]
        return type(kind)(tuple(parts))
    return type(kind)(nested.transform(bound, kind.data))


def _compared(op: CompareOp, a: CuteType, b: CuteType, builder: Builder) -> SSAValue:
    if (known := op.known) is not None:
        return builder.insert(arith.ConstantOp(IntegerAttr.from_bool(known))).result
    predicate = "eq" if op.name == "cute.equal" else "slt"
    made: SSAValue | None = None
    for x, y in zip(GetScalarsOp.chosen(a, False), GetScalarsOp.chosen(b, False), strict=True):
        if not (isinstance(x, Index) or isinstance(y, Index)):
            continue  # known, and true: else the whole would be known to be false
        one = builder.insert(arith.CmpiOp(as_value(x, builder), as_value(y, builder), predicate)).result
        made = one if made is None else builder.insert(arith.AndIOp(made, one)).result
    assert made is not None
    return made
