"""Forms that operations of the dialects share: what stands behind their names, and the checks of their operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..layout import Layout
from ..layout import tuples as nested
from ..layout.leaves import is_static
from .types import CuteType

Kinds = tuple[type[Attribute] | None, ...]
NONE: Mapping[str, Attribute] = MappingProxyType({})


class TypedOp(IRDLOperation):
    """`cute.NAME(%a, %b) : (...) -> (...)`. `KINDS`: the kinds of its operands, None for any. `OPTIONAL`: how many of
    the last ones may be left out. `OPERANDS`: in words."""

    KINDS: ClassVar[Kinds] = ()
    OPTIONAL: ClassVar[int] = 0
    OPERANDS: ClassVar[str] = ""
    args = var_operand_def()
    res = var_result_def()
    assembly_format = "`(` $args `)` attr-dict `:` functional-type($args, $res)"

    def __init__(
        self, args: Sequence[SSAValue], results: Sequence[Attribute] = (), properties: Mapping[str, Attribute] = NONE
    ) -> None:
        super().__init__(operands=[args], properties=properties, result_types=[results])

    def verify_(self) -> None:
        most = len(self.KINDS)
        if not most - self.OPTIONAL <= len(self.args) <= most:
            count = f"{most - self.OPTIONAL} to {most}" if self.OPTIONAL else str(most)
            words = f" ({self.OPERANDS})" if self.OPERANDS else ""
            raise VerifyException(f"{self.name} takes {count} operands{words}, not {len(self.args)}")
        for number, (arg, kind) in enumerate(zip(self.args, self.KINDS, strict=False)):
            if kind is not None and not isinstance(arg.type, kind):
                raise VerifyException(f"{self.name}: operand {number} is a {kind.name}, not {arg.type}")
        self.check([arg.type for arg in self.args], [result.type for result in self.res])

    def check(self, kinds: list[Any], made: list[Any]) -> None:
        """More that must hold. Raises VerifyException."""

    def gives(self, made: list[Any], wanted: Sequence[Attribute]) -> None:
        """Raises VerifyException unless the results have these types."""
        if made != list(wanted):
            said = ", ".join(map(str, wanted)) or "nothing"
            raise VerifyException(f"{self.name} gives {said}, not {', '.join(map(str, made)) or 'nothing'}")

    def known_shape(self, kind: Any) -> Layout:
        """The layout of a tensor's type. Raises VerifyException unless its shape is known."""
        layout: Layout = kind.data.layout
        if not is_static(*nested.flatten(layout.shape)):
            raise VerifyException(f"{self.name}: the shape of {layout} is not known; it is unrolled, so it must be")
        return layout


def parse_kind(parser: Parser, known: type[CuteType] | None) -> Attribute:
    """A type. One whose kind is known may leave out its name: `<"4:1">`."""
    if known is None:
        return parser.parse_type()
    written = parser.parse_optional_type()
    return known(known.parse_parameter(parser)) if written is None else written


def print_kind(printer: Printer, kind: Attribute, *, short: bool) -> None:
    """The same; `short`: without the name of its kind."""
    if short and isinstance(kind, CuteType):
        kind.print_parameter(printer)
    else:
        printer.print_attribute(kind)


def parse_operand(parser: Parser, known: type[CuteType] | None = None) -> SSAValue:
    """`(%a) : type`."""
    parser.parse_punctuation("(")
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(")")
    parser.parse_punctuation(":")
    return parser.resolve_operand(operand, parse_kind(parser, known))


def print_operand(printer: Printer, value: SSAValue, *, short: bool = False) -> None:
    """The same."""
    printer.print_string("(")
    printer.print_ssa_value(value)
    printer.print_string(") : ")
    print_kind(printer, value.type, short=short)
