"""`drop-unused` and `drop-unused-carry`: remove the values that composing has created but nothing uses."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from .. import location
from ..dialect.control import ContinueOp, EntryOp, ForOp
from ..dialect.memory import MakeTensorViewOp, MakeViewOp
from ..dialect.ops import AssumeOp, ConstantOp, MakeTokenOp

DROPPED = (AssumeOp, ConstantOp, MakeTensorViewOp, MakeViewOp, MakeTokenOp)  # operations without side effects


def drop_unused(entry: EntryOp) -> None:
    """Erases assumptions, constants, views and tokens that nothing uses."""
    for op in reversed(list(entry.walk())):
        if isinstance(op, DROPPED) and not any(result.uses.get_length() for result in op.results):
            Rewriter.erase_op(op)


def drop_unused_carry(entry: EntryOp) -> None:
    """Removes a carried value from a `for` if every iteration passes it on unchanged and nothing else uses it."""
    for loop in [op for op in entry.walk() if isinstance(op, ForOp)]:
        kept = [index for index in range(len(loop.initValues)) if not _passed_on(loop, index)]
        if len(kept) < len(loop.initValues):
            _carry_only(loop, kept)


def _passed_on(loop: ForOp, index: int) -> bool:
    argument = loop.body.block.args[1 + index]
    last = loop.body.block.last_op
    return (
        isinstance(last, ContinueOp)
        and last.operands[index] is argument
        and argument.uses.get_length() == 1
        and not loop.results[index].uses.get_length()
    )


def _carry_only(loop: ForOp, kept: list[int]) -> None:
    block = loop.body.block
    last = block.last_op
    assert last is not None
    last.operands = [last.operands[index] for index in kept]
    for index in reversed(range(len(loop.initValues))):
        if index not in kept:
            block.erase_arg(block.args[1 + index])
    made: Operation = ForOp.create(
        operands=[*loop.operands[:3], *(loop.initValues[index] for index in kept)],
        result_types=[loop.results[index].type for index in kept],
        properties=loop.properties,
        regions=[loop.detach_region(0)],
    )
    if place := location.get(loop):
        location.set(made, place)
    for new, index in zip(made.results, kept, strict=True):
        loop.results[index].replace_all_uses_with(new)
    around = loop.parent_block()
    assert around is not None
    around.insert_op_before(made, loop)
    Rewriter.erase_op(loop)
