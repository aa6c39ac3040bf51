"""A builder that is quick: operations without the checks of xDSL's constructors, and each number only once.

A module is verified as a whole where somebody asks for it. A number that a block has, or a block around it, is taken
again instead of computed again.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeVar

from xdsl.builder import Builder
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, LocationAttr, i1, i8, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.rewriter import InsertPoint

Op = TypeVar("Op", bound=Operation)


class Emitter(Builder):
    """Emits where its insertion point stands, which moves forward only. `location`: of what it makes, if known."""

    def __init__(self, insertion_point: InsertPoint) -> None:
        super().__init__(insertion_point)
        self.location: LocationAttr | None = None
        self._known: dict[Block, dict[Any, SSAValue]] = {}

    def make(
        self,
        kind: type[Op],
        operands: Sequence[SSAValue] = (),
        results: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] | None = None,
    ) -> Op:
        """An operation of plain operands. Properties that have a default take it."""
        said = defaults(kind) if properties is None else {**defaults(kind), **properties}
        op = kind.create(operands=operands, result_types=results, properties=said, location=self.location)
        block, before = self.insertion_point.block, self.insertion_point.insert_before
        if before is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, before)
        return op

    def once(
        self, key: Any, kind: type[Operation], operands: Sequence[SSAValue], result: Attribute,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:  # fmt: skip
        """The result of an operation without effects, made again only if nothing of this key is known here."""
        block: Block | None = self.insertion_point.block
        while block is not None:
            if (found := self._known.get(block, {}).get(key)) is not None:
                return found
            block = block.parent_block()
        made = self.make(kind, operands, (result,), properties).results[0]
        self._known.setdefault(self.insertion_point.block, {})[key] = made
        return made

    def number(self, value: int, kind: Attribute = i32) -> SSAValue:
        """A known number."""
        return self.once(("number", value, kind), arith.ConstantOp, (), kind, {"value": integer(value, kind)})

    def binary(self, kind: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """An operation of `arith` on two numbers of one type."""
        return self.once((kind, a, b), kind, (a, b), a.type)

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """`arith.cmpi`, an i1."""
        return self.once((predicate, a, b), arith.CmpiOp, (a, b), i1, {"predicate": _predicate(predicate)})

    def shifted(self, base: SSAValue, offset: SSAValue | int, element: Attribute = i8) -> SSAValue:
        """The pointer so many elements behind another."""
        if isinstance(offset, int) and offset == 0:
            return base
        known = isinstance(offset, int)
        said = {
            "elem_type": element,
            "noWrapFlags": integer(0),
            "rawConstantIndices": _indices(offset if known else llvm.GEP_USE_SSA_VAL),
        }
        operands = (base,) if known else (base, offset)
        return self.once(("shifted", base, offset, element), llvm.GEPOp, operands, base.type, said)


@contextlib.contextmanager
def uncollected() -> Generator[None]:
    """Without garbage collection: what compiles makes many objects and no garbage, and a collection walks them all."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@functools.cache
def defaults(kind: type[Operation]) -> Mapping[str, Attribute]:
    """The properties that an operation has if none are said."""
    if not issubclass(kind, IRDLOperation):
        return {}
    said = kind.get_irdl_definition().properties
    return {name: row.default_value for name, row in said.items() if row.default_value is not None}


@functools.cache
def integer(value: int, kind: Attribute = i32) -> Attribute:
    """An integer attribute."""
    made: Any = IntegerAttr(value, kind)  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownVariableType]
    return made


@functools.cache
def _indices(index: int) -> Attribute:
    return DenseArrayBase.from_list(i32, [index])


@functools.cache
def _predicate(name: str) -> Attribute:
    x = arith.ConstantOp(IntegerAttr(0, i32)).result
    return arith.CmpiOp(x, x, name).predicate
