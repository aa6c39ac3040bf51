"""`inline`: fill the holes of a composed kernel and replace calls by the bodies of the fragments that they name.

Each operation keeps the place where it was written, so that an error in a fragment points into the fragment's file.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ..compose.dialect import CallOp, FragmentOp, HoleOp
from ..dialect import location
from ..dialect.control import EntryOp, ModuleOp


def inline(module: ModuleOp) -> None:
    """Leave a module with its entries alone: no holes, calls or fragments."""
    fragments = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FragmentOp)}
    for entry in module.entries.values():
        inline_into(entry, fragments)
    for fragment in fragments.values():
        Rewriter.erase_op(fragment)


def inline_into(function: EntryOp | FragmentOp, fragments: Mapping[str, FragmentOp]) -> None:
    """Fill the holes and replace the calls in one function. `fragments`: those that may be called, by symbol."""
    while parts := [op for op in function.walk() if isinstance(op, HoleOp | CallOp)]:
        for part in parts:
            block = part.body.block if isinstance(part, HoleOp) else _copy(fragments[part.callee.data].body.block)
            _splice(part, block)


def _copy(block: Block) -> Block:
    """A block with copies of its operations, which keep names and places."""
    copy = Block(arg_types=[argument.type for argument in block.args])
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, copy.args, strict=True))
    for op in block.ops:
        made = op.clone(value_mapper=values)
        for old, new in zip(op.walk(), made.walk(), strict=True):
            if place := location.get(old):
                location.set(new, place)
        copy.add_op(made)
    return copy


def _splice(part: HoleOp | CallOp, block: Block) -> None:
    """Put a block's operations in the place of a hole or call."""
    last = block.last_op
    assert last is not None
    for parameter, value in zip(block.args, part.arguments, strict=True):
        parameter.replace_all_uses_with(value)
    results: list[SSAValue] = list(last.operands)
    Rewriter.erase_op(last)
    around = part.parent_block()
    assert around is not None
    for op in list[Operation](block.ops):
        op.detach()
        around.insert_op_before(op, part)
    Rewriter.replace_op(part, [], results)
