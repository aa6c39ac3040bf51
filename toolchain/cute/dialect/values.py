"""The operations of `cute` that bring numbers of the kernel into values of the algebra, and out again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import IntegerType, UnitAttr, i1, i32, i64
from xdsl.ir import Operation, SSAValue
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
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .. import layout as algebra
from ..layout import Basis, ComposedLayout, Dynamic, Layout, LayoutError, Swizzle
from .algebra import define
from .forms import parse_operand, print_operand
from .types import (
    CoordType,
    CuteType,
    IntTupleType,
    LayoutType,
    ShapeType,
    StrideType,
    TileType,
    is_static,
)


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
    """Makes a tuple from its numbers that are not known, from left to right: integers of their width, or int_tuples
    of one leaf."""

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
        if (wanted := len(dynamic_leaves(kind))) != len(self.args):
            raise VerifyException(f"{self.name}: {kind} has {wanted} numbers to fill, and there are {len(self.args)}")
        for number, arg in enumerate(self.args):
            self.refuse_number(number, arg.type)

    def refuse_number(self, place: int, kind: Any) -> None:
        """Raises VerifyException unless an operand is a number of the width that the type says: an integer, or an
        int_tuple of one leaf."""
        wanted = dynamic_leaves(self.res.type)[place].width
        if isinstance(kind, IntTupleType) and not isinstance(kind.data, tuple):
            width = kind.data.width if isinstance(kind.data, Dynamic) else wanted
        elif isinstance(kind, IntegerType):
            width = kind.width.data
        else:
            width = None
        if width != wanted:
            raise VerifyException(f"{self.name}: operand {place} is {kind}, and the number is an i{wanted}")


def _leaves(value: Any) -> Iterator[Any]:
    """The numbers of a value in the order of its text: of a swizzle its three, of a step along a coordinate the number
    of steps and then the coordinate's path as it is written."""
    if isinstance(value, ComposedLayout):
        value = (value.inner, value.offset, value.outer)
    elif isinstance(value, Layout):
        value = (value.shape, value.stride)
    elif isinstance(value, Swizzle):
        value = (value.bits, value.base, value.shift)
    elif isinstance(value, Basis):
        value = (value.scale, *reversed(value.path))
    if isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    elif value is not None:
        yield value


def dynamic_leaves(kind: Any) -> list[Any]:
    """The numbers of a type's value that are not known, in the order of its text."""
    return [leaf for leaf in _leaves(kind.data) if isinstance(leaf, Dynamic)]


def width(leaf: Any) -> IntegerType:
    """The type of a number: i64 if it is said to be, else i32."""
    return i64 if isinstance(leaf, Dynamic) and leaf.width == 64 else i32


@irdl_op_definition
class GetScalarsOp(IRDLOperation):
    """The numbers of a value from left to right, each an i32, or an i64 for `?{i64}`: `%m, %n = cute.get_scalars(%s) :
    !cute.shape<"(?,?)">`. A step along a coordinate has its number of steps and its path, a swizzle three numbers.

    With `<{only_dynamic}>`, only those that are not known when the kernel is compiled.
    """

    name = "cute.get_scalars"
    arg = operand_def(CuteType)
    only_dynamic = opt_prop_def(UnitAttr)
    scalars = var_result_def(IntegerType)
    traits = traits_def(Pure())

    def __init__(self, arg: SSAValue, *, only_dynamic: bool = False) -> None:
        assert isinstance(arg.type, CuteType)
        kinds = [width(leaf) for leaf in self.chosen(arg.type, only_dynamic)]
        properties = {"only_dynamic": UnitAttr()} if only_dynamic else {}
        super().__init__(operands=[arg], properties=properties, result_types=[kinds])

    @staticmethod
    def chosen(kind: CuteType, only_dynamic: bool) -> list[Any]:
        """The numbers of a type's value that the operation returns, in the order of its text."""
        return dynamic_leaves(kind) if only_dynamic else list(_leaves(kind.data))

    def verify_(self) -> None:
        assert isinstance(self.arg.type, CuteType)
        wanted = [width(leaf) for leaf in self.chosen(self.arg.type, self.only_dynamic is not None)]
        if wanted != [one.type for one in self.scalars]:
            raise VerifyException(
                f"cute.get_scalars: {self.arg.type} has {len(wanted)} numbers ({', '.join(map(str, wanted))}), "
                f"not {len(self.scalars)}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> GetScalarsOp:
        only = parser.parse_optional_punctuation("<") is not None
        if only:
            parser.parse_punctuation("{")
            parser.parse_keyword("only_dynamic")
            parser.parse_punctuation("}")
            parser.parse_punctuation(">")
        return cls(parse_operand(parser), only_dynamic=only)

    def print(self, printer: Printer) -> None:
        printer.print_string("<{only_dynamic}> " if self.only_dynamic is not None else " ")
        print_operand(printer, self.arg)


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
        allowed = EQUAL if self.name == "cute.equal" else LESS
        for number, kind in enumerate((self.a.type, self.b.type)):
            if not isinstance(kind, allowed):
                raise VerifyException(f"{self.name}: operand {number} is a {kind}, which is not compared")
        if self.name == "cute.equal" and type(self.a.type) is not type(self.b.type):
            raise VerifyException(f"cute.equal: {self.a.type} and {self.b.type} are of two kinds")
        try:
            _ = self.known
        except LayoutError as error:
            raise VerifyException(f"{self.name}: {error}") from error


LESS = (IntTupleType, ShapeType, CoordType)
EQUAL = (*LESS, StrideType, LayoutType)


def _numbers_of(value: SSAValue) -> Any:
    assert isinstance(value.type, CuteType)
    made = value.type.data
    return (made.shape, made.stride) if isinstance(made, Layout) else made


MAKERS = {"make_int_tuple": IntTupleType, "make_shape": ShapeType, "make_stride": StrideType, "make_coord": CoordType,
          "make_tile": TileType}  # fmt: skip
COMPARISONS = {
    "equal": "True if two values of one kind are equal leaf by leaf, an i1.",
    "elem_less": "True if each leaf of a coordinate is less than that of a shape, an i1.",
}


def _makes(kind: type[CuteType]) -> str:
    name = kind.name.removeprefix("cute.")
    return (
        f"A value of kind {name} from its numbers that are not known, from left to right: integers of their width, or "
        "int_tuples of one leaf."
    )


VALUES: dict[str, type[Operation]] = {
    "static": StaticOp,
    "get_scalars": GetScalarsOp,
    **{name: define(name, MakeOp, KIND=kind, __doc__=_makes(kind)) for name, kind in MAKERS.items()},
    **{name: define(name, CompareOp, __doc__=does) for name, does in COMPARISONS.items()},
}
