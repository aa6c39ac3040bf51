"""`cute-expand-ops`: the operations of the algebra become arithmetic on the numbers of their operands.

What is left of `cute` are constructors, `get_scalars`, `static` and `print`, which `cute-to-base` lowers. An operation
whose result is known becomes `cute.static`; else the numbers that its operands hold are taken out, the algebra's
function runs on them, each of its operations one of `arith`, and the result is put together again. Source of the
meaning: NVIDIA's CuTe IR, `cute-expand-ops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...errors import SourceError
from ..dialect.ops import OPERATIONS, AlgebraOp, CompareOp, GetScalarsOp, StaticOp
from ..dialect.sugar import LeavesOp
from ..dialect.tensors import FieldsType
from ..dialect.types import (
    ComposedLayoutType,
    CoordType,
    CuteType,
    IntTupleType,
    LayoutType,
    ShapeType,
    StrideType,
    SwizzleType,
    is_static,
)
from ..dialect.values import dynamic_leaves
from ..layout import Layout
from ..layout import tuples as nested
from ..nvvm.location import blamed
from ..nvvm.scalar import Scalar, as_integer, compared
from .bound import with_numbers
from .desugar.place import Placed

Make: Any = {name: OPERATIONS[name] for name in OPERATIONS if name.startswith("make_")}
EVALUATED = (OPERATIONS["layout_eval"], OPERATIONS["crd2idx"])
Increment, Coordinate = OPERATIONS["increment_coord"], OPERATIONS["idx2crd"]


def expand_ops(module: ModuleOp) -> None:
    """Expands in place. Operations on tensors stay as they are. Raises SourceError for a tile with numbers that are not
    known as a result."""
    for op in list(module.walk()):
        if not isinstance(op, AlgebraOp | LeavesOp | CompareOp) or _is_of_tensors(op):
            continue
        builder = Placed(op, InsertPoint.before(op))
        with blamed("cute-expand-ops", op):
            match op:
                case AlgebraOp():
                    Rewriter.replace_op(op, [], [_expanded(op, builder)])
                case LeavesOp():
                    Rewriter.replace_op(op, [], _leaves(op, builder))
                case CompareOp():
                    Rewriter.replace_op(op, [], [_comparison(op, builder)])


def _is_of_tensors(op: Operation) -> bool:
    return any(isinstance(value.type, FieldsType) for value in (*op.operands, *op.results))


def _expanded(op: AlgebraOp, builder: Placed) -> SSAValue:
    kind: Any = op.res.type
    if is_static(kind):
        return builder.insert(StaticOp(kind)).res
    taken = [taken_apart(arg, builder) for arg in op.args]
    if type(op) is Increment:
        where, shape = taken
        leaves = _incremented(nested.flatten(where.data), nested.flatten(shape.data), builder)
        made: CuteType = CoordType(nested.like(iter(leaves), kind.data))
    elif type(op) is Coordinate:
        made = CoordType(_coordinate(*(one.data for one in taken)))
    else:
        if isinstance(op, EVALUATED):
            taken[0] = CoordType(_spread(taken[0].data, _extents(taken[1])))
        numbers = [int(number) for number in op.numbers.iter_values()] if op.numbers else []
        made = op.inferred(taken, numbers)
    return put_together(made, kind, builder)


def taken_apart(value: SSAValue, builder: Placed) -> CuteType:
    """The value with its numbers, which `get_scalars` takes out."""
    kind = value.type
    assert isinstance(kind, CuteType)
    known = dynamic_leaves(kind)
    if not known:
        return kind
    scalars = builder.insert(GetScalarsOp(value, only_dynamic=True)).scalars
    numbers = (
        Scalar(leaf.width, leaf.divisibility, scalar, builder) for leaf, scalar in zip(known, scalars, strict=True)
    )
    return with_numbers(kind, numbers)


def put_together(made: CuteType, kind: CuteType, builder: Placed) -> SSAValue:
    """The value of a type from its parts, with the numbers that a program computed."""
    if is_static(kind) and isinstance(kind, LayoutType | SwizzleType | ComposedLayoutType):
        return builder.insert(StaticOp(kind)).res
    match kind:
        case LayoutType():
            shape = put_together(ShapeType(made.data.shape), ShapeType(kind.data.shape), builder)
            stride = put_together(StrideType(made.data.stride), StrideType(kind.data.stride), builder)
            return builder.insert(Make["make_layout"]([shape, stride], None, kind)).res
        case ComposedLayoutType():
            outer = put_together(LayoutType(made.data.outer), LayoutType(kind.data.outer), builder)
            offset = put_together(IntTupleType(made.data.offset), IntTupleType(kind.data.offset), builder)
            of = LayoutType if isinstance(kind.data.inner, Layout) else SwizzleType
            inner = put_together(of(made.data.inner), of(kind.data.inner), builder)
            return builder.insert(Make["make_composed_layout"]([inner, offset, outer], None, kind)).res
        case _:
            values = [as_integer(leaf, leaf.width, builder) for leaf in dynamic_leaves(made)]
            return builder.insert(Make[f"make_{kind.name.removeprefix('cute.')}"](values, kind)).res


def _leaves(op: LeavesOp, builder: Placed) -> list[SSAValue]:
    made = [kind for _, kind in op.leaves(taken_apart(op.arg, builder))]
    kinds = [kind for _, kind in op.leaves(op.arg.type)]
    return [
        builder.insert(StaticOp(kind)).res if is_static(kind) else put_together(one, kind, builder)
        for one, kind in zip(made, kinds, strict=True)
    ]


def _comparison(op: CompareOp, builder: Placed) -> SSAValue:
    if (known := op.known) is not None:
        return builder.insert(arith.ConstantOp(IntegerAttr.from_bool(known))).result
    a, b = (builder.insert(GetScalarsOp(value)).scalars for value in (op.a, op.b))
    predicate = "eq" if op.name == "cute.equal" else "slt"
    made: SSAValue | None = None
    for x, y in zip(a, b, strict=True):
        one = compared(predicate, _number(x, builder), _number(y, builder), builder)
        made = one if made is None else builder.insert(arith.AndIOp(made, one)).result
    if made is None:
        raise SourceError("there is no number to compare")
    return made


def _number(value: SSAValue, builder: Placed) -> Scalar:
    assert isinstance(value.type, IntegerType)
    return Scalar(value.type.width.data, 1, value, builder)


def _coordinate(index: Any, shape: Any) -> Any:
    """The coordinate of an index, as `idx2crd` gives it, by one quotient and one remainder for each mode but the
    last."""
    if isinstance(index, tuple):
        return tuple(map(_coordinate, index, shape))
    if not isinstance(shape, tuple):
        return index
    made = list[Any]()
    for extent in shape[:-1]:
        inside = nested.product(extent)
        index, within = index // inside, index % inside
        made.append(_coordinate(within, extent))
    return (*made, _coordinate(index, shape[-1])) if shape else ()


def _spread(where: Any, shape: Any) -> Any:
    """A coordinate whose indices into several modes are coordinates of these."""
    if isinstance(where, tuple):
        return tuple(map(_spread, where, shape))
    return _coordinate(where, shape) if isinstance(where, Scalar) else where


def _extents(kind: CuteType) -> Any:
    return kind.data if isinstance(kind, ShapeType) else kind.data.shape


def _incremented(where: Sequence[Any], extents: Sequence[Any], builder: Placed) -> list[Any]:
    """The next coordinate's leaves: where one has reached its extent it is 0, and the next one is incremented."""
    first, *rest = where
    moved = first + 1
    if not rest:
        return [moved]
    if isinstance(moved, int) and isinstance(extents[0], int):
        return [moved, *rest] if moved < extents[0] else [0, *_incremented(rest, extents[1:], builder)]
    inside = compared("slt", moved, extents[0], builder)
    widths = [getattr(leaf, "width", 32) for leaf in where]
    then, other = Block(), Block()
    below = Placed(builder.origin, InsertPoint.at_end(then))
    below.insert(scf.YieldOp(*(_at(leaf, width, below) for leaf, width in zip([moved, *rest], widths, strict=True))))
    above = Placed(builder.origin, InsertPoint.at_end(other))
    next_ones = [0, *_incremented([_within(leaf, above) for leaf in rest], extents[1:], above)]
    above.insert(scf.YieldOp(*(_at(leaf, width, above) for leaf, width in zip(next_ones, widths, strict=True))))
    kinds = [value.type for value in then.last_op.operands] if then.last_op else []
    made = builder.insert(scf.IfOp(inside, kinds, Region(then), Region(other)))
    return [Scalar(width, 1, value, builder) for width, value in zip(widths, made.results, strict=True)]


def _at(leaf: Any, width: int, builder: Placed) -> SSAValue:
    return as_integer(leaf, width, builder)


def _within(leaf: Any, builder: Placed) -> Any:
    """A number whose operations stand in another block."""
    return Scalar(leaf.width, leaf.divisibility, leaf.value, builder) if isinstance(leaf, Scalar) else leaf
