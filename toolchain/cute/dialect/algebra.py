"""An operation of the layout algebra: its row in a table, its text, and its verifier.

The result's type follows from the operands' types by the layout algebra; the verifier compares it with the type that is
written. Source of names and text: NVIDIA's CuTe IR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from ..layout import ComposedLayout, Layout, LayoutError
from .tensors import CoordTensorType, MemRefType
from .types import ComposedLayoutType, CuteType, LayoutType, plain

Infer = Callable[[Sequence[Any], Sequence[int]], CuteType]
MODES, RANGE, ONE = "list", "two", "one"


@dataclass(frozen=True)
class OpForm:
    """An operation: the kinds of its operands in words, what it does, and the type of its result from the operands'
    types and the numbers in its angle brackets. `optional`: operands that may be left out at the end. `numbers`: `list`
    is `<[0, 1]>`, `two` `<0, 2>`, `one` `<4>`. `infers`: its text does not name the result's type; `plain`: its types
    stand without parentheses."""

    operands: tuple[str, ...]
    does: str
    infer: Infer
    numbers: str = ""
    optional: int = 0
    infers: bool = False
    plain: bool = False


def same(kind: CuteType, made: Layout) -> CuteType:
    """A layout of the kind of an operand: a composed one keeps its inner part, a tensor its place."""
    if isinstance(kind, MemRefType | CoordTensorType):
        return type(kind)(kind.data.moved(0, made))
    if isinstance(kind, ComposedLayoutType):
        return ComposedLayoutType(ComposedLayout(kind.data.inner, kind.data.offset, made))
    return LayoutType(made)


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
        kinds = parser.parse_comma_separated_list(delimiter, parser.parse_type)
        result = None
        if not row.infers:
            parser.parse_punctuation("->")
            result = parser.parse_type()
        resolved = _resolve(parser, operands, kinds)
        try:
            made = cls(resolved, numbers, result)
            made.attributes |= said
            return made
        except VerifyException as error:
            parser.raise_error(str(error), place, parser.pos)

    def print(self, printer: Printer) -> None:
        printer.print_string(_numbers_text(self._numbers, self.ROW.numbers))
        printer.print_string("(")
        printer.print_list(self.args, printer.print_ssa_value)
        printer.print_string(")")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
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


def define(name: str, base: type[Any], **constants: Any) -> type[Operation]:
    """An operation `cute.NAME`: a subclass of `base` with class constants."""
    label = "".join(part.capitalize() for part in name.replace(".", "_").split("_")) + "Op"
    said = dict.fromkeys((key for key in constants if key.isupper()), ClassVar[Any])
    made: Any = type(
        label, (base,), {"name": f"cute.{name}", "__module__": __name__, "__annotations__": said, **constants}
    )
    return irdl_op_definition(made)
