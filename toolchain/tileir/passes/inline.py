"""`inline`: fills the holes of a composed kernel and replaces each call by the body of the fragment that it names.

Each operation keeps its source location, so that an error in a fragment points into the fragment's file.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from .. import location
from ..dialect.control import EntryOp, ModuleOp
from ..dialect.fragments import CallOp, FragmentOp, HoleOp


def inline(module: ModuleOp) -> None:
    """Leaves a module that has entries only: no holes, calls or fragments."""
    fragments = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FragmentOp)}
    for entry in module.entries.values():
        inline_into(entry, fragments)
    for fragment in fragments.values():
        Rewriter.erase_op(fragment)


def inline_into(function: EntryOp | FragmentOp, fragments: Mapping[str, FragmentOp]) -> None:
    """Fills the holes and replaces the calls in one function. `fragments`: the callable fragments by symbol."""
    while parts := [op for op in function.walk() if isinstance(op, HoleOp | CallOp)]:
        for part in parts:
            block = part.body.block if isinstance(part, HoleOp) else _copy(fragments[part.callee.data].body.block)
            _splice(part, block)


def _copy(block: Block) -> Block:
    """A copy of a block. The operations keep their value names and source locations."""
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
    """Replaces a hole or call by a block's operations."""
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
