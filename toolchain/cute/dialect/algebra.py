"""An operation of the layout algebra: its row in a table, its text, and its verifier.

The result's type follows from the operands' types by the layout algebra; the verifier compares it with the type that is
written. Source of names and text: NVIDIA's CuTe IR.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...errors import UsageError
from ..layout import ComposedLayout, Layout, LayoutError, dice, slice_layout
from ..layout import picked as algebra_picked
from .forms import parse_kind, print_kind
from .tensors import CoordTensorType, MemRefType
from .types import (
    ComposedLayoutType,
    CoordType,
    CuteType,
    IntTupleType,
    LayoutType,
    ShapeType,
    StrideType,
    plain,
)

Infer = Callable[[Sequence[Any], Sequence[int]], CuteType]
MODES, RANGE, ONE = "list", "two", "one"


@dataclass(frozen=True)
class OpForm:
    """An operation: the kinds of its operands in words, what it does, and the type of its result from the operands'
    types and the numbers in its angle brackets. `optional`: operands that may be left out at the end. `numbers`: `list`
    is `<[0, 1]>`, `two` `<0, 2>`, `one` `<4>`. `infers`: its text does not name the result's type; `plain`: its types
    stand without parentheses. `kinds`: the types of its operands, None for any that `infer` takes; `alike`: all of one
    kind. `short`: the operands, and -1 for the result, whose kind is known, so that the text leaves its name out."""

    operands: tuple[str, ...]
    does: str
    infer: Infer
    numbers: str = ""
    optional: int = 0
    infers: bool = False
    plain: bool = False
    kinds: Sequence[tuple[type[CuteType], ...] | None] = ()
    alike: bool = False
    short: Mapping[int, type[CuteType]] = field(default_factory=dict[int, type[CuteType]])


def same(kind: CuteType, made: Layout) -> CuteType:
    """A layout of the kind of an operand: a composed one keeps its inner part, a tensor its place."""
    if isinstance(kind, MemRefType | CoordTensorType):
        return type(kind)(kind.data.moved(0, made))
    if isinstance(kind, ComposedLayoutType):
        return ComposedLayoutType(ComposedLayout(kind.data.inner, kind.data.offset, made))
    return LayoutType(made)


def picked(kind: CuteType, coordinate: Any, *, is_open: bool) -> CuteType:
    """The parts of a tuple or a layout for which a coordinate is open, or is a number."""
    if isinstance(kind, LayoutType):
        return LayoutType((slice_layout if is_open else dice)(kind.data, coordinate))
    if isinstance(kind, ComposedLayoutType):
        return same(kind, (slice_layout if is_open else dice)(kind.data.outer, coordinate))
    if not isinstance(kind, IntTupleType | ShapeType | StrideType | CoordType):
        raise LayoutError(f"it takes a tuple or a layout, not {kind}")
    return type(kind)(algebra_picked(kind.data, coordinate, is_open=is_open))


def outer(kind: CuteType) -> Any:
    """The layout of a value: of a tensor, or the outer one of a composed layout."""
    if isinstance(kind, MemRefType | CoordTensorType):
        return kind.data.layout
    return kind.data.outer if isinstance(kind, ComposedLayoutType) else kind.data


class AlgebraOp(IRDLOperation):
    """An operation of the table."""

    ROW: ClassVar[OpForm]
    args = var_operand_def(CuteType)
    numbers = opt_prop_def(DenseArrayBase[IntegerType])
    res = result_def(CuteType)
    traits = traits_def(Pure())

    def __init__(
        self, args: Sequence[SSAValue], numbers: Sequence[int] | None = None, result: Attribute | None = None
    ) -> None:
        properties = {} if numbers is None else {"numbers": DenseArrayBase.from_list(i64, numbers)}
        made = self.inferred([arg.type for arg in args], numbers or ()) if result is None else result
        super().__init__(operands=[args], properties=properties, result_types=[made])

    @classmethod
    def inferred(cls, kinds: Sequence[Any], numbers: Sequence[int]) -> CuteType:
        """The result's type. Raises VerifyException with the algebra's reason."""
        cls.refuse(kinds)
        try:
            return cls.ROW.infer(kinds, numbers)
        except (LayoutError, UsageError, AttributeError, TypeError, IndexError) as error:
            said = str(error) if isinstance(error, LayoutError | UsageError) else "the operands are of the wrong kind"
            raise VerifyException(f"{cls.name}({', '.join(map(str, kinds))}): {said}") from error

    @classmethod
    def refuse(cls, kinds: Sequence[Any]) -> None:
        """Raises VerifyException for operands of other kinds than the row's."""
        for number, (kind, allowed) in enumerate(zip(kinds, cls.ROW.kinds, strict=False)):
            if allowed is not None and not isinstance(kind, allowed):
                names = " or ".join(one.name for one in allowed)
                raise VerifyException(f"{cls.name}: operand {number} is a {names}, not {kind}")
        if cls.ROW.alike and len({type(kind) for kind in kinds}) > 1:
            raise VerifyException(f"{cls.name}: {' and '.join(map(str, kinds))} are of two kinds")

    def verify_(self) -> None:
        high = len(self.ROW.operands)
        low = high - self.ROW.optional
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
        said = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        bare = row.infers or row.plain
        delimiter = parser.Delimiter.NONE if bare else parser.Delimiter.PAREN
        numbered = itertools.count()
        kinds = parser.parse_comma_separated_list(delimiter, lambda: parse_kind(parser, row.short.get(next(numbered))))
        result = None
        if not row.infers:
            parser.parse_punctuation("->")
            result = parse_kind(parser, row.short.get(-1))
        resolved = _resolve(parser, operands, kinds)
        try:
            made = cls(resolved, numbers, result)
            made.attributes |= said
            return made
        except VerifyException as error:
            parser.raise_error(str(error), place, parser.pos)

    def print(self, printer: Printer) -> None:
        printer.print_string(_numbers_text(self._numbers if self.numbers is not None else None, self.ROW.numbers))
        printer.print_string("(")
        printer.print_list(self.args, printer.print_ssa_value)
        printer.print_string(")")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        bare = self.ROW.infers or self.ROW.plain
        printer.print_string("" if bare else "(")
        short = self.ROW.short
        printer.print_list(enumerate(self.args), lambda pair: print_kind(printer, pair[1].type, short=pair[0] in short))
        printer.print_string("" if bare else ")")
        if not self.ROW.infers:
            printer.print_string(" -> ")
            print_kind(printer, self.res.type, short=-1 in short)


def _resolve(parser: Parser, operands: Sequence[UnresolvedOperand], kinds: Sequence[Attribute]) -> list[SSAValue]:
    if len(operands) != len(kinds):
        parser.raise_error(f"{len(operands)} operands have {len(kinds)} types")
    return [parser.resolve_operand(operand, kind) for operand, kind in zip(operands, kinds, strict=True)]


def _parse_numbers(parser: Parser, form: str) -> list[int] | None:
    if not form or parser.parse_optional_punctuation("<") is None:
        return None
    delimiter = parser.Delimiter.SQUARE if form == MODES else parser.Delimiter.NONE
    made = parser.parse_comma_separated_list(delimiter, lambda: parser.parse_integer(allow_boolean=False))
    parser.parse_punctuation(">")
    return made


def _numbers_text(numbers: Sequence[int] | None, form: str) -> str:
    if numbers is None:
        return " " * (form == MODES)
    inside = ", ".join(map(str, numbers))
    return f"<[{inside}]> " if form == MODES else f"<{inside}> "


def define(name: str, base: type[Any], **constants: Any) -> type[Operation]:
    """An operation `cute.NAME`: a subclass of `base` with class constants."""
    label = "".join(part.capitalize() for part in name.replace(".", "_").split("_")) + "Op"
    said = dict.fromkeys((key for key in constants if key.isupper()), ClassVar[Any])
    made: Any = type(
        label, (base,), {"name": f"cute.{name}", "__module__": __name__, "__annotations__": said, **constants}
    )
    return irdl_op_definition(made)
