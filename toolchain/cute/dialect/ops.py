"""The operations of the `cute` dialect on layouts: one row of a table each.

An operation's result type follows from its operands' types by the layout algebra; the verifier compares it with the
type that is written. Source of names and text: NVIDIA's CuTe IR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, UnitAttr, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...errors import UsageError
from .. import layout as algebra
from ..layout import ComposedLayout, Dynamic, Layout, LayoutError
from ..layout import tuples as nested
from .tensors import Coordinates, CoordTensorType, MemRefType, PtrType
from .types import (
    ComposedLayoutType,
    CoordType,
    CuteType,
    IntTupleType,
    LayoutType,
    ShapeType,
    StrideType,
    SwizzleType,
    TileType,
    is_static,
    plain,
)

Infer = Callable[[Sequence[Any], Sequence[int]], CuteType]


@dataclass(frozen=True)
class Row:
    """An operation: how many operands it has, the numbers in its angle brackets (`list`: `<[0, 1]>`, `two`: `<0, 2>`,
    `one`: `<4>`, or none), and the type of its result, from the operands' types and these numbers. `infers`: its text
    does not name the result's type; `plain`: its types stand without parentheses."""

    operands: tuple[int, int]
    infer: Infer
    numbers: str = ""
    infers: bool = False
    plain: bool = False


def _same(kind: CuteType, made: Layout) -> CuteType:
    """A layout of the kind of an operand: a composed one keeps its inner part, a tensor its place."""
    if isinstance(kind, MemRefType | CoordTensorType):
        return type(kind)(kind.data.moved(0, made))
    if isinstance(kind, ComposedLayoutType):
        return ComposedLayoutType(ComposedLayout(kind.data.inner, kind.data.offset, made))
    return LayoutType(made)


def _outer(kind: CuteType) -> Any:
    if isinstance(kind, MemRefType | CoordTensorType):
        return kind.data.layout
    return kind.data.outer if isinstance(kind, ComposedLayoutType) else kind.data


def _unary(function: Callable[[Layout], Layout]) -> Infer:
    return lambda kinds, _: LayoutType(function(kinds[0].data))


def _tiled(function: Callable[[Layout, Any], Layout]) -> Infer:
    return lambda kinds, _: _same(kinds[0], function(_outer(kinds[0]), kinds[1].data))


def _composition(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    outer, inner = kinds
    # A shape is a tile: its sizes compose mode by mode.
    return _same(outer, algebra.composition(_outer(outer), inner.data))


def _coalesce(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    profile = kinds[1].data if len(kinds) > 1 else None
    return _same(kinds[0], algebra.coalesce(_outer(kinds[0]), profile))


def _complement(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    return LayoutType(algebra.complement(kinds[0].data, kinds[1].data if len(kinds) > 1 else None))


def _slice(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    kind, coordinate = kinds[0], kinds[1].data
    if isinstance(kind, MemRefType | CoordTensorType):
        made, offset = algebra.slice_and_offset(kind.data.layout, coordinate)
        return type(kind)(kind.data.moved(offset, made))
    return LayoutType(algebra.slice_layout(kind.data, coordinate))


def _local_tile(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    kind, tile, coordinate = kinds
    made, offset = algebra.local_tile(kind.data.layout, tile.data, coordinate.data)
    return type(kind)(kind.data.moved(offset, made))


def _partition(which: str) -> Infer:
    """The part of a tensor that a thread holds, by a tiled copy or a tiled MMA."""

    def infer(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
        tiled, tensor, thread = kinds
        threads, values = tiled.data.partition(which, tensor.data.layout)
        return type(tensor)(tensor.data.moved(threads(thread.data), values))

    return infer


def _identity_tensor(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    made = algebra.make_identity_layout(kinds[0].data)
    return CoordTensorType(Coordinates((0,) * len(made), made))


def _size(kinds: Sequence[Any], modes: Sequence[int]) -> CuteType:
    made = _chosen(kinds[0], modes)
    return IntTupleType(nested.product(made.shape if isinstance(made, Layout) else made))


def _cosize(kinds: Sequence[Any], modes: Sequence[int]) -> CuteType:
    return IntTupleType(algebra.cosize(_chosen(kinds[0], modes)))


def _chosen(kind: CuteType, modes: Sequence[int]) -> Any:
    made = _outer(kind) if isinstance(kind, ComposedLayoutType) else kind.data
    for mode in modes:
        made = made[mode]
    return made


def _get(kinds: Sequence[Any], modes: Sequence[int]) -> CuteType:
    return type(kinds[0])(_chosen(kinds[0], modes))


def _select(kinds: Sequence[Any], modes: Sequence[int]) -> CuteType:
    kind = kinds[0]
    if isinstance(made := _outer(kind), Layout):
        return _same(kind, algebra.select(made, *modes))
    return type(kind)(tuple(kind.data[m] for m in modes))


def _crd2idx(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    where = kinds[1].data if isinstance(kinds[1], LayoutType) else Layout(kinds[1].data)
    return IntTupleType(where(kinds[0].data))


def _rank(function: Callable[[Layout, int], Layout]) -> Infer:
    def infer(kinds: Sequence[Any], numbers: Sequence[int]) -> CuteType:
        value, filler = kinds[0].data, kinds[1].data
        if isinstance(value, Layout):
            made = function(value, numbers[0])
            return LayoutType(made)
        parts = value if isinstance(value, tuple) else (value,)
        added = (filler,) * (numbers[0] - len(parts))
        return type(kinds[0])((*parts, *added) if function is algebra.append_to_rank else (*added, *parts))

    return infer


ROWS: dict[str, Row] = {
    "make_layout": Row((2, 2), lambda k, _: LayoutType(Layout(k[0].data, k[1].data))),
    "make_composed_layout": Row(
        (3, 3), lambda k, _: ComposedLayoutType(ComposedLayout(k[0].data, k[1].data, k[2].data))
    ),
    "get_shape": Row((1, 1), lambda k, _: ShapeType(_outer(k[0]).shape), plain=True),
    "get_stride": Row((1, 1), lambda k, _: StrideType(k[0].data.stride), plain=True),
    "composed_get_inner": Row((1, 1), lambda k, _: _inner(k[0].data), plain=True),
    "composed_get_offset": Row((1, 1), lambda k, _: IntTupleType(k[0].data.offset), plain=True),
    "composed_get_outer": Row((1, 1), lambda k, _: LayoutType(k[0].data.outer), plain=True),
    "get": Row((1, 1), _get, "list", plain=True),
    "select": Row((1, 1), _select, "list", plain=True),
    "group_modes": Row((1, 1), lambda k, n: _same(k[0], algebra.group_modes(_outer(k[0]), *n)), "two"),
    "recast_layout": Row((1, 1), lambda k, n: LayoutType(algebra.recast_layout(k[0].data, *n)), "two", plain=True),
    "size": Row((1, 1), _size, "list"),
    "cosize": Row((1, 1), _cosize, "list"),
    "tuple_product": Row((1, 1), lambda k, _: IntTupleType(nested.product(k[0].data))),
    "tuple_product_each": Row((1, 1), lambda k, _: IntTupleType(tuple(nested.product(part) for part in k[0].data))),
    "crd2idx": Row((2, 2), _crd2idx),
    "idx2crd": Row((2, 2), lambda k, _: CoordType(algebra.idx2crd(k[0].data, k[1].data))),
    "make_ordered_layout": Row((2, 2), lambda k, _: LayoutType(algebra.make_ordered_layout(k[0].data, k[1].data))),
    "make_layout_like": Row((1, 1), lambda k, _: LayoutType(algebra.make_layout_like(_outer(k[0]))), plain=True),
    "make_identity_layout": Row((1, 1), lambda k, _: LayoutType(algebra.make_identity_layout(k[0].data)), plain=True),
    "tuple_add": Row((2, 2), lambda k, _: type(k[0])(algebra.tuple_add(k[0].data, k[1].data))),
    "tuple_sub": Row((2, 2), lambda k, _: type(k[0])(algebra.tuple_sub(k[0].data, k[1].data))),
    "shape_div": Row((2, 2), lambda k, _: ShapeType(algebra.shape_div(k[0].data, k[1].data))),
    "ceil_div": Row((2, 2), lambda k, _: type(k[0])(algebra.divide_up(k[0].data, k[1].data))),
    "append_to_rank": Row((2, 2), _rank(algebra.append_to_rank), "one", infers=True),
    "prepend_to_rank": Row((2, 2), _rank(algebra.prepend_to_rank), "one", infers=True),
    "coalesce": Row((1, 2), _coalesce),
    "composition": Row((2, 2), _composition),
    "complement": Row((1, 2), _complement),
    "right_inverse": Row((1, 1), _unary(algebra.right_inverse)),
    "left_inverse": Row((1, 1), _unary(algebra.left_inverse)),
    "slice": Row((2, 2), _slice, infers=True),
    "dice": Row((2, 2), lambda k, _: LayoutType(algebra.dice(k[0].data, k[1].data)), infers=True),
    "get_layout": Row((1, 1), lambda k, _: LayoutType(k[0].data.layout), plain=True),
    "get_iter": Row((1, 1), lambda k, _: PtrType(replace(k[0].data, layout=Layout(1, 0))), plain=True),
    "make_view": Row((2, 2), lambda k, _: MemRefType(replace(k[0].data, layout=k[1].data)), infers=True),
    "make_identity_tensor": Row((1, 1), _identity_tensor, infers=True),
    "local_tile": Row((3, 3), _local_tile, infers=True),
    "tiled.copy.partition_S": Row((3, 3), _partition("S"), infers=True),
    "tiled.copy.partition_D": Row((3, 3), _partition("D"), infers=True),
    "tiled.mma.partition_A": Row((3, 3), _partition("a"), infers=True),
    "tiled.mma.partition_B": Row((3, 3), _partition("b"), infers=True),
    "tiled.mma.partition_C": Row((3, 3), _partition("c"), infers=True),
    "tile_to_shape": Row(
        (2, 3), lambda k, _: LayoutType(algebra.tile_to_shape(k[0].data, k[1].data, k[2].data if k[2:] else None))
    ),
    **{
        f"{how}_divide": Row((2, 2), _tiled(getattr(algebra, f"{how}_divide")))
        for how in ("logical", "zipped", "tiled", "flat")
    },
    **{
        f"{how}_product": Row((2, 2), _tiled(getattr(algebra, f"{how}_product")))
        for how in ("logical", "zipped", "tiled", "flat", "blocked", "raked")
    },
}


def _inner(composed: ComposedLayout) -> CuteType:
    return LayoutType(composed.inner) if isinstance(composed.inner, Layout) else SwizzleType(composed.inner)


class AlgebraOp(IRDLOperation):
    """An operation of the table."""

    ROW: ClassVar[Row]
    args = var_operand_def(CuteType)
    numbers = opt_prop_def(DenseArrayBase[IntegerType])
    res = result_def(CuteType)
    traits = traits_def(Pure())

    def __init__(self, args: Sequence[SSAValue], numbers: Sequence[int] = (), result: Attribute | None = None) -> None:
        properties = {"numbers": DenseArrayBase.from_list(i64, numbers)} if numbers else {}
        made = self.inferred([arg.type for arg in args], numbers) if result is None else result
        super().__init__(operands=[args], properties=properties, result_types=[made])

    @classmethod
    def inferred(cls, kinds: Sequence[Any], numbers: Sequence[int]) -> CuteType:
        """The result's type. Raises VerifyException with the algebra's reason."""
        try:
            return cls.ROW.infer(kinds, numbers)
        except (LayoutError, UsageError, AttributeError, TypeError, IndexError) as error:
            said = str(error) if isinstance(error, LayoutError | UsageError) else "the operands are of the wrong kind"
            raise VerifyException(f"{cls.name}({', '.join(map(str, kinds))}): {said}") from error

    def verify_(self) -> None:
        low, high = self.ROW.operands
        if not low <= len(self.args) <= high:
            raise VerifyException(f"{self.name} takes {low} to {high} operands, not {len(self.args)}")
        made, written = self.inferred([arg.type for arg in self.args], self._numbers), self.res.type
        assert isinstance(written, CuteType)
        if plain(made) != plain(written):
            raise VerifyException(f"{self.name}: the result is {made}, not {written}")

    @property
    def _numbers(self) -> list[int]:
        return [int(number) for number in self.numbers.iter_values()] if self.numbers else []

    @classmethod
    def parse(cls, parser: Parser) -> AlgebraOp:
        row, place = cls.ROW, parser.pos
        numbers = _parse_numbers(parser, row.numbers)
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        bare = row.infers or row.plain
        delimiter = parser.Delimiter.NONE if bare else parser.Delimiter.PAREN
        kinds = parser.parse_comma_separated_list(delimiter, parser.parse_type)
        result = None
        if not row.infers:
            parser.parse_punctuation("->")
            result = parser.parse_type()
        resolved = _resolve(parser, operands, kinds)
        try:
            return cls(resolved, numbers, result)
        except VerifyException as error:
            parser.raise_error(str(error), place, parser.pos)

    def print(self, printer: Printer) -> None:
        printer.print_string(_numbers_text(self._numbers, self.ROW.numbers))
        printer.print_string("(")
        printer.print_list(self.args, printer.print_ssa_value)
        printer.print_string(") : ")
        bare = self.ROW.infers or self.ROW.plain
        printer.print_string("" if bare else "(")
        printer.print_list(self.args, lambda arg: printer.print_attribute(arg.type))
        printer.print_string("" if bare else ")")
        if not self.ROW.infers:
            printer.print_string(" -> ")
            printer.print_attribute(self.res.type)


def _resolve(parser: Parser, operands: Sequence[UnresolvedOperand], kinds: Sequence[Attribute]) -> list[SSAValue]:
    if len(operands) != len(kinds):
        parser.raise_error(f"{len(operands)} operands have {len(kinds)} types")
    return [parser.resolve_operand(operand, kind) for operand, kind in zip(operands, kinds, strict=True)]


def _parse_numbers(parser: Parser, form: str) -> list[int]:
    if not form or parser.parse_optional_punctuation("<") is None:
        return []
    delimiter = parser.Delimiter.SQUARE if form == "list" else parser.Delimiter.NONE
    made = parser.parse_comma_separated_list(delimiter, lambda: parser.parse_integer(allow_boolean=False))
    parser.parse_punctuation(">")
    return made


def _numbers_text(numbers: Sequence[int], form: str) -> str:
    if not form or not numbers:
        return ""
    inside = ", ".join(map(str, numbers))
    return f"<[{inside}]> " if form == "list" else f"<{inside}> "


@irdl_op_definition
class StaticOp(IRDLOperation):
    """A value whose numbers are all known: `%a = cute.static : !cute.layout<"(4,8):(1,4)">`."""

    name = "cute.static"
    res = result_def(CuteType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($res)"

    def __init__(self, kind: CuteType) -> None:
        super().__init__(result_types=[kind])

    def verify_(self) -> None:
        assert isinstance(self.res.type, CuteType)
        if not is_static(self.res.type):
            raise VerifyException(f"cute.static: {self.res.type} has numbers that are not known")


class MakeOp(IRDLOperation):
    """Makes a tuple from its numbers that are not known, from left to right, each an i32."""

    KIND: ClassVar[type[CuteType]]
    args = var_operand_def()
    res = result_def(CuteType)
    traits = traits_def(Pure())
    assembly_format = "`(` $args `)` attr-dict `:` functional-type($args, $res)"

    def __init__(self, args: Sequence[SSAValue], kind: CuteType) -> None:
        super().__init__(operands=[args], result_types=[kind])

    def verify_(self) -> None:
        kind = self.res.type
        if not isinstance(kind, self.KIND):
            raise VerifyException(f"{self.name} makes a {self.KIND.name}, not {kind}")
        if (wanted := kind.write(kind.data).count("?")) != len(self.args):
            raise VerifyException(f"{self.name}: {kind} has {wanted} numbers to fill, and there are {len(self.args)}")


@irdl_op_definition
class GetScalarsOp(IRDLOperation):
    """The leaves of a value from left to right, each an i32: `%m, %n = cute.get_scalars (%s) : !cute.shape<"(?,?)">`.

    With `<{only_dynamic}>`, only those that are not known when the kernel is compiled.
    """

    name = "cute.get_scalars"
    arg = operand_def(CuteType)
    only_dynamic = opt_prop_def(UnitAttr)
    scalars = var_result_def(i32)
    traits = traits_def(Pure())

    def __init__(self, arg: SSAValue, *, only_dynamic: bool = False) -> None:
        assert isinstance(arg.type, CuteType)
        count = len(self.chosen(arg.type, only_dynamic))
        properties = {"only_dynamic": UnitAttr()} if only_dynamic else {}
        super().__init__(operands=[arg], properties=properties, result_types=[[i32] * count])

    @staticmethod
    def chosen(kind: CuteType, only_dynamic: bool) -> list[Any]:
        """The leaves of a type's value that the operation returns."""
        value = kind.data
        leaves = nested.flatten((value.shape, value.stride) if isinstance(value, Layout) else value)
        return [leaf for leaf in leaves if leaf is not None and (not only_dynamic or isinstance(leaf, Dynamic))]

    def verify_(self) -> None:
        assert isinstance(self.arg.type, CuteType)
        wanted = len(self.chosen(self.arg.type, self.only_dynamic is not None))
        if wanted != len(self.scalars):
            raise VerifyException(f"cute.get_scalars: {self.arg.type} has {wanted} numbers, not {len(self.scalars)}")

    @classmethod
    def parse(cls, parser: Parser) -> GetScalarsOp:
        only = parser.parse_optional_punctuation("<") is not None
        if only:
            parser.parse_punctuation("{")
            parser.parse_keyword("only_dynamic")
            parser.parse_punctuation("}")
            parser.parse_punctuation(">")
        parser.parse_punctuation("(")
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(")")
        parser.parse_punctuation(":")
        return cls(parser.resolve_operand(operand, parser.parse_type()), only_dynamic=only)

    def print(self, printer: Printer) -> None:
        printer.print_string("<{only_dynamic}> (" if self.only_dynamic is not None else " (")
        printer.print_ssa_value(self.arg)
        printer.print_string(") : ")
        printer.print_attribute(self.arg.type)


class CompareOp(IRDLOperation):
    """Compares two values leaf by leaf; the result is an i1."""

    a = operand_def(CuteType)
    b = operand_def(CuteType)
    res = result_def(i1)
    traits = traits_def(Pure())
    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"

    def __init__(self, a: SSAValue, b: SSAValue) -> None:
        super().__init__(operands=[a, b], result_types=[i1])

    @property
    def known(self) -> bool | None:
        """The result, or None if only the kernel knows. Raises LayoutError if the two cannot be compared."""
        compare = algebra.equal if self.name == "cute.equal" else algebra.less_each
        return compare(_numbers_of(self.a), _numbers_of(self.b))

    def verify_(self) -> None:
        if self.name == "cute.equal" and type(self.a.type) is not type(self.b.type):
            raise VerifyException(f"cute.equal: {self.a.type} and {self.b.type} are of two kinds")
        try:
            _ = self.known
        except LayoutError as error:
            raise VerifyException(f"{self.name}: {error}") from error


def _numbers_of(value: SSAValue) -> Any:
    assert isinstance(value.type, CuteType)
    made = value.type.data
    return (made.shape, made.stride) if isinstance(made, Layout) else made


def _define(name: str, base: type[Any], **constants: Any) -> type[Operation]:
    label = "".join(part.capitalize() for part in name.replace(".", "_").split("_")) + "Op"
    said = dict.fromkeys(constants, ClassVar[Any])
    made: Any = type(
        label, (base,), {"name": f"cute.{name}", "__module__": __name__, "__annotations__": said, **constants}
    )
    return irdl_op_definition(made)


MAKERS = {"make_int_tuple": IntTupleType, "make_shape": ShapeType, "make_stride": StrideType, "make_coord": CoordType,
          "make_tile": TileType}  # fmt: skip
OPERATIONS: dict[str, type[Operation]] = {
    "static": StaticOp,
    "get_scalars": GetScalarsOp,
    **{name: _define(name, MakeOp, KIND=kind) for name, kind in MAKERS.items()},
    **{name: _define(name, CompareOp) for name in ("equal", "elem_less")},
    **{name: _define(name, AlgebraOp, ROW=row) for name, row in ROWS.items()},
}
