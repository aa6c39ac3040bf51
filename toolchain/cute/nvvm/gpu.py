"""Operations of MLIR's `gpu` dialect, in its text, that xDSL has in the generic form alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import FunctionType, IndexType, StringAttr, SymbolNameConstraint, SymbolRefAttr, UnitAttr
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface

from .dialect import AXES, GpuModuleOp


@irdl_op_definition
class GpuFuncOp(IRDLOperation):
    """`gpu.func @k(%a: i32) kernel { ... }`; without `kernel`, a function that kernels call."""

    name = "gpu.func"
    body = region_def()
    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    kernel = opt_prop_def(UnitAttr)
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, kind: FunctionType, body: Region, *, kernel: bool) -> None:
        properties = {"sym_name": StringAttr(name), "function_type": kind, **({"kernel": UnitAttr()} if kernel else {})}
        super().__init__(properties=properties, regions=[body])

    @classmethod
    def parse(cls, parser: Parser) -> GpuFuncOp:
        name = parser.parse_symbol_name().data
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        results: list[Attribute] = []
        if parser.parse_optional_punctuation("->"):
            many = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
            results = [parser.parse_type()] if many is None else list(many)
        kernel = parser.parse_optional_keyword("kernel") is not None
        said = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(arguments)
        made = cls(name, FunctionType.from_lists([one.type for one in arguments], results), body, kernel=kernel)
        if said is not None:
            made.attributes |= said.data
        return made

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string("(")
        printer.print_list(self.body.blocks[0].args, printer.print_block_argument)
        printer.print_string(")")
        if results := self.function_type.outputs.data:
            printer.print_string(" -> (")
            printer.print_list(results, printer.print_attribute)
            printer.print_string(")")
        printer.print_string(" kernel" * (self.kernel is not None))
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


class ValuesOp(IRDLOperation):
    """`NAME %a, %b : i32, i32`."""

    args = var_operand_def()
    assembly_format = "attr-dict ($args^ `:` type($args))?"

    def __init__(self, args: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[args])


@irdl_op_definition
class GpuReturnOp(ValuesOp):
    """Leaves a function."""

    name = "gpu.return"
    traits = traits_def(IsTerminator())


@irdl_op_definition
class GpuTerminatorOp(IRDLOperation):
    """Ends the body of a launch."""

    name = "gpu.terminator"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@irdl_op_definition
class GpuPrintfOp(IRDLOperation):
    r"""`gpu.printf "%d\0A", %a : i32`: prints, each thread for itself."""

    name = "gpu.printf"
    args = var_operand_def()
    format = prop_def(StringAttr)

    def __init__(self, text: str, args: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[args], properties={"format": StringAttr(text)})

    @classmethod
    def parse(cls, parser: Parser) -> GpuPrintfOp:
        text = parser.parse_str_literal()
        names = []
        while parser.parse_optional_punctuation(","):
            names.append(parser.parse_unresolved_operand())
        if not names:
            return cls(text)
        parser.parse_punctuation(":")
        kinds = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls(text, parser.resolve_operands(names, kinds, parser.pos))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.format)
        for arg in self.args:
            printer.print_string(", ")
            printer.print_ssa_value(arg)
        if self.args:
            printer.print_string(" : ")
            printer.print_list(self.args, lambda arg: printer.print_attribute(arg.type))


@irdl_op_definition
class GpuLaunchOp(IRDLOperation):
    """A kernel in its place: `gpu.launch blocks(%i, %j, %k) in (%x = %a, ...) threads(...) in (...) { ... }`."""

    name = "gpu.launch"
    sizes = var_operand_def(IndexType)
    body = region_def()
    WHAT: ClassVar[tuple[str, str]] = ("blocks", "threads")

    def __init__(self, sizes: Sequence[SSAValue], body: Region) -> None:
        super().__init__(operands=[sizes], regions=[body])

    @classmethod
    def parse(cls, parser: Parser) -> GpuLaunchOp:
        places: list[Any] = []
        extents: list[Any] = []
        sizes: list[SSAValue] = []
        for what in cls.WHAT:
            parser.parse_keyword(what)
            places += parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _index(parser))
            parser.parse_keyword("in")
            pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _assigned(parser))
            extents += [name for name, _ in pairs]
            sizes += [size for _, size in pairs]
        return cls(sizes, parser.parse_region([*places, *extents]))

    def print(self, printer: Printer) -> None:
        arguments = self.body.blocks[0].args
        for number, what in enumerate(self.WHAT):
            printer.print_string(f" {what}(")
            printer.print_list(arguments[3 * number : 3 * number + 3], printer.print_ssa_value)
            printer.print_string(") in (")
            extents = arguments[6 + 3 * number : 9 + 3 * number]
            pairs = zip(extents, self.sizes[3 * number : 3 * number + 3], strict=True)
            printer.print_list(pairs, lambda pair: _print_assigned(printer, *pair))
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class GpuLaunchFuncOp(IRDLOperation):
    """`gpu.launch_func @module::@kernel blocks in (%x, %y, %z) threads in (%a, %b, %c) args(%n : i32)`."""

    name = "gpu.launch_func"
    kernel = prop_def(SymbolRefAttr)
    sizes = var_operand_def(IndexType)
    args = var_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, kernel: SymbolRefAttr, sizes: Sequence[SSAValue], args: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[sizes, args], properties={"kernel": kernel})

    @classmethod
    def parse(cls, parser: Parser) -> GpuLaunchFuncOp:
        kernel = parser.parse_attribute()
        if not isinstance(kernel, SymbolRefAttr):
            parser.raise_error("expected the name of a kernel, @module::@kernel")
        sizes: list[SSAValue] = []
        for what in GpuLaunchOp.WHAT:
            parser.parse_keyword(what)
            parser.parse_keyword("in")
            names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
            sizes += parser.resolve_operands(names, [IndexType()] * len(names), parser.pos)
        args: list[SSAValue] = []
        if parser.parse_optional_keyword("args") is not None:
            args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _typed(parser))
        return cls(kernel, sizes, args)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.kernel)
        for number, what in enumerate(GpuLaunchOp.WHAT):
            printer.print_string(f" {what} in (")
            printer.print_list(self.sizes[3 * number : 3 * number + 3], printer.print_ssa_value)
            printer.print_string(")")
        if self.args:
            printer.print_string(" args(")
            printer.print_list(self.args, lambda arg: _print_typed(printer, arg))
            printer.print_string(")")


def _typed(parser: Parser) -> SSAValue:
    name = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return parser.resolve_operand(name, parser.parse_type())


def _print_typed(printer: Printer, arg: SSAValue) -> None:
    printer.print_ssa_value(arg)
    printer.print_string(" : ")
    printer.print_attribute(arg.type)


def _index(parser: Parser) -> Parser.Argument:
    return parser.parse_argument(expect_type=False).resolve(IndexType())


def _assigned(parser: Parser) -> tuple[Any, SSAValue]:
    name = _index(parser)
    parser.parse_punctuation("=")
    return name, parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())


def _print_assigned(printer: Printer, name: SSAValue, size: SSAValue) -> None:
    printer.print_ssa_value(name)
    printer.print_string(" = ")
    printer.print_ssa_value(size)


class PlaceOp(IRDLOperation):
    """`%x = gpu.NAME x`: a place in the grid, or an extent of it, along an axis."""

    dimension = prop_def(StringAttr)
    res = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, axis: str) -> None:
        super().__init__(properties={"dimension": StringAttr(axis)}, result_types=[IndexType()])

    @classmethod
    def parse(cls, parser: Parser) -> PlaceOp:
        axis = parser.parse_identifier()
        if axis not in AXES:
            parser.raise_error(f"an axis is one of {', '.join(AXES)}, not {axis}")
        return cls(axis)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.dimension.data}")


def _place(name: str, register: str) -> type[PlaceOp]:
    label = "".join(part.capitalize() for part in name.split("_")) + "Op"
    made = type(label, (PlaceOp,), {"name": f"gpu.{name}", "__module__": __name__, "REGISTER": register,
                                    "__annotations__": {"REGISTER": ClassVar[str]}})  # fmt: skip
    return irdl_op_definition(made)


# Of each operation the special register that it reads.
PLACES = {"thread_id": "tid", "block_dim": "ntid", "block_id": "ctaid", "grid_dim": "nctaid"}
OPERATIONS: list[type[Operation]] = [
    GpuModuleOp, GpuFuncOp, GpuReturnOp, GpuTerminatorOp, GpuPrintfOp, GpuLaunchOp, GpuLaunchFuncOp,
    *(_place(name, register) for name, register in PLACES.items()),
]  # fmt: skip
GPU = Dialect("gpu", OPERATIONS, [])
