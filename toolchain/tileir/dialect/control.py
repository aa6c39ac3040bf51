"""Modules, entries, globals, and structured control flow."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType, UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator

from .attrs import AttrsAttr, DenseAttr, HintsAttr, IntAttr, StrAttr
from .base import SEGMENTS, V13_2, TileOp, tile_op
from .types import TileType, TokenType


@dataclass(frozen=True)
class DebugInfo:
    """The parts of a bytecode file beside the program: its tables in their order, the debug section, and the index of
    each function's part of that section. They are kept so that writing the module again gives the same bytes."""

    version: tuple[int, int]
    strings: tuple[str, ...]
    types: tuple[Attribute, ...]
    constants: tuple[bytes, ...]
    section: bytes
    per_function: tuple[int, ...]


@irdl_op_definition
class ModuleOp(IRDLOperation):
    """A module of entries and globals. `producer`: the tool that made it, in free words. The values of other attributes
    are kept as they are spelled."""

    name = "cuda_tile.module"
    sym_name = prop_def(StrAttr)
    producer = opt_prop_def(StrAttr)
    body = region_def("single_block")

    @property
    def debug_info(self) -> DebugInfo | None:
        """The debug information of the bytecode file that this module was read from, if it was."""
        return getattr(self, "_debug_info", None)

    @debug_info.setter
    def debug_info(self, value: DebugInfo | None) -> None:
        self._debug_info = value

    @property
    def entries(self) -> dict[str, EntryOp]:
        """The module's entries by symbol."""
        return {op.symbol: op for op in self.body.block.ops if isinstance(op, EntryOp)}


@irdl_op_definition
class EntryOp(IRDLOperation):
    """A kernel, which a grid of tile blocks runs. `arg_attrs`: a dictionary for each parameter, of what tools say of
    it; no rule of Tile IR depends on them."""

    name = "cuda_tile.entry"
    sym_name = prop_def(StrAttr)
    function_type = prop_def(FunctionType)
    optimization_hints = opt_prop_def(HintsAttr)
    arg_attrs = opt_prop_def(AttrsAttr)
    body = region_def("single_block")

    @property
    def symbol(self) -> str:
        return self.sym_name.data


@irdl_op_definition
class GlobalOp(IRDLOperation):
    """A variable of the module; its value's type is a rank-1 tile. `alignment` in bytes, 0 if unspecified."""

    name = "cuda_tile.global"
    sym_name = prop_def(StrAttr)
    value = prop_def(DenseAttr)
    alignment = prop_def(IntAttr)
    constant = opt_prop_def(UnitAttr)
    private = opt_prop_def(UnitAttr)


@tile_op("assert", 5)
class AssertOp(TileOp):
    """Ends the launch with `message` unless the condition holds, for every element of a tile."""

    message = prop_def(StrAttr)
    condition = operand_def(TileType)


class TerminatorOp(TileOp):
    values = var_operand_def()
    traits = traits_def(IsTerminator())


@tile_op("break", 10)
class BreakOp(TerminatorOp):
    """Leaves the nearest `loop`; its operands are the loop's results."""


@tile_op("continue", 17)
class ContinueOp(TerminatorOp):
    """Begins the next round of the nearest loop; its operands are the carried values of that round."""


@tile_op("return", 92)
class ReturnOp(TerminatorOp):
    """Ends the block's work. Every entry ends with one; inside an `if` or a `loop` it ends the block early."""


@tile_op("yield", 109)
class YieldOp(TerminatorOp):
    """Ends a region of `if`, `reduce` or `scan`, and gives its results."""


@tile_op("for", 41, fields_since={"unsignedCmp": V13_2})
class ForOp(TileOp):
    """A loop from lowerBound by steps to below upperBound. The body takes the index and the carried values."""

    outputs = var_result_def()
    unsignedCmp = opt_prop_def(UnitAttr)  # noqa: N815 (the format's own name)
    lowerBound = operand_def(TileType)  # noqa: N815
    upperBound = operand_def(TileType)  # noqa: N815
    step = operand_def(TileType)
    initValues = var_operand_def()  # noqa: N815
    body = region_def("single_block")


@tile_op("loop", 65)
class LoopOp(TileOp):
    """A loop that ends at a `break`."""

    outputs = var_result_def()
    initValues = var_operand_def()  # noqa: N815
    body = region_def("single_block")


@tile_op("if", 50)
class IfOp(TileOp):
    """A branch. Without an else, the second region is empty."""

    outputs = var_result_def()
    condition = operand_def(TileType)
    then_region = region_def()
    else_region = region_def()


@tile_op("print_tko", 85, fields_since={"result_token": V13_2, "token": V13_2})
class PrintTkoOp(TileOp):
    """Prints from the GPU, or from the interpreter: C's printf, with a whole tile for each conversion, in brackets on
    one line. A conversion has flags, a width and a precision of at most 4095, a size (`h`, `l`, `ll`) and one of
    `diouxXcpsaAeEfFgG`. Integers of less than 32 bits are printed as the i32 of the same value, floats as f64.
    Printing many tiles is slow."""

    result_token = result_def(TokenType)
    str = prop_def(StrAttr)
    args = var_operand_def(TileType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


def parent_loop(op: Operation) -> Operation | None:
    """The `for` or `loop` around an operation."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ForOp | LoopOp):
        parent = parent.parent_op()
    return parent
