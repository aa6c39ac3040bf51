"""`cute-to-base`: what `cute-expand-ops` leaves becomes `llvm`, `arith` and `ub`; no type of `cute` is left, also in
signatures and blocks.

A value becomes the numbers in it that are not known: one alone is an integer, others are an `llvm.struct`; a layout is
a struct of shape and stride, a composed one of outer, offset and inner, a tile of its layouts. Source of the forms:
NVIDIA's CuTe IR, `cute-to-base`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.dialects import arith, func, llvm, ub
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...errors import SourceError
from ..dialect.ops import OPERATIONS, GetScalarsOp, MakeOp, StaticOp
from ..dialect.sugar import PrintOp
from ..dialect.tensors import FieldsType
from ..dialect.types import (
    ComposedLayoutType,
    CuteType,
    IntTupleType,
    LayoutType,
    ShapeType,
    StrideType,
    SwizzleType,
    TileType,
)
from ..dialect.values import dynamic_leaves, width
from ..layout import Layout
from ..nvvm.gpu import GpuFuncOp
from ..nvvm.location import blamed
from .desugar.place import Placed
from .host_printing import print_value

MakeLayout: Any = OPERATIONS["make_layout"]
MakeComposed: Any = OPERATIONS["make_composed_layout"]


def to_base(module: ModuleOp) -> None:
    """Lowers in place. Raises SourceError for an operation that `cute-expand-ops` expands, or that has no such form."""
    ops = [(op, [value.type for value in op.operands]) for op in module.walk() if op.name.startswith("cute.")]
    for op in list(module.walk()):
        _retype(op)
    for op, kinds in ops:
        builder = Placed(op, InsertPoint.before(op))
        with blamed("cute-to-base", op):
            Rewriter.replace_op(op, [], _lowered(op, kinds, builder))


def lowered_type(kind: Attribute) -> Attribute:
    """What a type becomes; one of another dialect stays."""
    if not isinstance(kind, CuteType) or isinstance(kind, FieldsType):
        return kind
    parts = [lowered_type(part) for part in _parts(kind)]
    if isinstance(kind, LayoutType | ComposedLayoutType) or len(parts) != 1:
        return llvm.LLVMStructType.from_type_list(parts)
    return parts[0]


def _parts(kind: CuteType) -> list[Attribute]:
    """The types of the parts that a value's struct has, in its order."""
    match kind:
        case LayoutType():
            return [ShapeType(kind.data.shape), StrideType(kind.data.stride)]
        case ComposedLayoutType():
            of = LayoutType if isinstance(kind.data.inner, Layout) else SwizzleType
            return [LayoutType(kind.data.outer), IntTupleType(kind.data.offset), of(kind.data.inner)]
        case TileType():
            return [LayoutType(layout) for layout in _layouts(kind.data)]
        case _:
            return [width(leaf) for leaf in dynamic_leaves(kind)]


def _layouts(tile: Any) -> Iterator[Layout]:
    for part in tile if isinstance(tile, tuple) else (tile,):
        if isinstance(part, Layout):
            yield part
        elif part is not None:
            yield from _layouts(part)


def _retype(op: Operation) -> None:
    """Types in signatures, blocks and results of operations of other dialects."""
    if isinstance(op, func.FuncOp | GpuFuncOp):
        said = op.function_type
        inputs, outputs = (list(map(lowered_type, kinds)) for kinds in (said.inputs.data, said.outputs.data))
        op.function_type = FunctionType.from_lists(inputs, outputs)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.args:
                _keep_type(argument)
    if not op.name.startswith("cute."):
        for result in op.results:
            _keep_type(result)


def _keep_type(value: SSAValue) -> None:
    if (wanted := lowered_type(value.type)) != value.type:
        Rewriter.replace_value_with_new_type(value, wanted)


def _lowered(op: Operation, kinds: Sequence[Any], builder: Placed) -> list[SSAValue]:
    match op:
        case StaticOp():
            return [_poison(op.res.type, builder)]
        case MakeOp():
            return [_made(op, kinds, builder)]
        case GetScalarsOp():
            return scalars(op.arg, kinds[0], builder, only_dynamic=op.only_dynamic is not None)
        case MakeLayout():
            return [_inserted(op.res.type, op.args, (0, 1), builder)]
        case MakeComposed():
            inner, offset, outer = op.args
            return [_inserted(op.res.type, (outer, offset, inner), (0, 1, 2), builder)]
        case PrintOp():
            print_value(op, kinds[0], builder, scalars_in_order(op.arg, kinds[0], builder))
            return []
        case _:
            hint = "run cute-expand-ops before; what has tensors is lowered by cute-lower"
            raise SourceError(f"{op.name} is left", hint=hint)


def _poison(kind: Attribute, builder: Placed) -> SSAValue:
    return builder.insert(ub.PoisonOp(lowered_type(kind))).result


def _made(op: MakeOp, kinds: Sequence[Any], builder: Placed) -> SSAValue:
    """A value with its numbers. A number that its int_tuple knows is a constant."""
    kind: Any = op.res.type
    numbers = [
        builder.insert(arith.ConstantOp(IntegerAttr(known.data, width(leaf)))).result
        if isinstance(known, IntTupleType) and isinstance(known.data, int)
        else arg
        for arg, known, leaf in zip(op.args, kinds, dynamic_leaves(kind), strict=True)
    ]
    places = _places(kind)
    if places == [()]:
        return numbers[0]
    made = _poison(kind, builder)
    for number, place in zip(numbers, places, strict=True):
        made = builder.insert(llvm.InsertValueOp(_position(place), made, number)).res
    return made


def _inserted(kind: Attribute, parts: Sequence[SSAValue], places: Sequence[int], builder: Placed) -> SSAValue:
    made = _poison(kind, builder)
    for part, place in zip(parts, places, strict=True):
        made = builder.insert(llvm.InsertValueOp(_position((place,)), made, part)).res
    return made


def _position(place: Sequence[int]) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(i64, place)


def _places(kind: CuteType) -> list[tuple[int, ...]]:
    """Where each number of a value is in its struct, in the order of the value's text."""
    parts = _parts(kind)
    if not isinstance(kind, LayoutType | ComposedLayoutType | TileType):
        return [()] if len(parts) == 1 else [(number,) for number in range(len(parts))]
    inner = [[(number, *place) for place in _places(part)] for number, part in enumerate(parts)]  # pyright: ignore[reportArgumentType]
    if isinstance(kind, TileType) and len(parts) == 1:
        return [place[1:] for place in inner[0]]
    ordered = reversed(inner) if isinstance(kind, ComposedLayoutType) else inner
    return [place for part in ordered for place in part]


def scalars(value: SSAValue, kind: Any, builder: Placed, *, only_dynamic: bool) -> list[SSAValue]:
    """The numbers of a lowered value, in the order of its text; those that the type knows are constants."""
    places, kinds = _places(kind), [width(leaf) for leaf in dynamic_leaves(kind)]
    taken: dict[tuple[int, ...], SSAValue] = {}
    for place, number in sorted(zip(places, kinds, strict=True), key=lambda pair: pair[0]):
        taken[place] = builder.insert(llvm.ExtractValueOp(_position(place), value, number)).res if place else value
    numbers = iter(taken[place] for place in places)
    made: list[SSAValue] = []
    for leaf in GetScalarsOp.chosen(kind, only_dynamic):
        known = isinstance(leaf, int)
        made.append(builder.insert(arith.ConstantOp(IntegerAttr(leaf, i32))).result if known else next(numbers))
    return made


def scalars_in_order(value: SSAValue, kind: Any, builder: Placed) -> list[SSAValue]:
    """The numbers that are not known. Of a composed layout, part by part."""
    if not isinstance(kind, ComposedLayoutType):
        return scalars(value, kind, builder, only_dynamic=True)
    parts = _parts(kind)
    taken = [
        builder.insert(llvm.ExtractValueOp(_position((number,)), value, lowered_type(part))).res
        for number, part in enumerate(parts)
    ]
    pairs = reversed(list(zip(taken, parts, strict=True)))
    return [number for one, part in pairs for number in scalars(one, part, builder, only_dynamic=True)]
