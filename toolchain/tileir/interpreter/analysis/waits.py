"""Finds the loops in which a block may wait for another one: how often they turn depends on memory that they read."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block, Operation, SSAValue

from .fields import enum, is_token, reads_memory, short_name
from .taint import flows

_LEAVES = ("break", "continue", "return")


def waits(body: Block) -> Mapping[Operation, Operation]:
    """Of each loop that may wait, the operation that reads what it waits for. A weak load counts if it reads one place
    again and again; a search through memory ends by itself."""
    found: dict[Operation, Operation] = {}
    for loop in body.walk():
        if short_name(loop) != "loop":
            continue
        read = next((op for op in loop.walk() if _may_change(op, loop) and _decides(op, loop)), None)
        if read is not None:
            found[loop] = read
    return found


def _may_change(op: Operation, loop: Operation) -> bool:
    """True if an op reads memory that another block may have changed since the last turn."""
    if not reads_memory(op):
        return False
    return enum(op, "memory_ordering_semantics") != "weak" or not any(_varies(v, loop) for v in op.operands)


def _varies(value: SSAValue, loop: Operation) -> bool:
    """True if a value, not a token's, may differ from turn to turn, other than by what the turn reads at one place."""
    todo, seen = [value], set[SSAValue]()
    while todo:
        one = todo.pop()
        if one in seen or is_token(one):
            continue
        seen.add(one)
        owner = one.owner
        if isinstance(owner, Block):
            if owner.parent_op() is loop:
                return True
            owner = owner.parent_op()
        if isinstance(owner, Operation) and owner is not loop and _inside(owner, loop):
            todo += [operand for op in owner.walk() for operand in op.operands]
    return False


def _decides(op: Operation, loop: Operation) -> bool:
    """True if what an op reads decides whether the loop turns again."""
    reached, todo = set[SSAValue](), [op.results[0]]
    while todo:
        value = todo.pop()
        if value in reached:
            continue
        reached.add(value)
        for use in value.uses:
            user = use.operation
            if short_name(user) == "if" and any(_leaves(inner, loop) for inner in user.walk()):
                return True
            todo += [target for source, target in flows(user) if source is value and _inside(user, loop)]
    return False


def _leaves(op: Operation, loop: Operation) -> bool:
    """True if an op ends a turn of this loop, or the block."""
    if short_name(op) not in _LEAVES:
        return False
    parent = op.parent_op()
    while short_name(op) != "return" and parent is not loop and parent is not None:
        if short_name(parent) in ("loop", "for"):
            return False
        parent = parent.parent_op()
    return _inside(op, loop)


def _inside(op: Operation, loop: Operation) -> bool:
    parent: Operation | None = op
    while parent is not None and parent is not loop:
        parent = parent.parent_op()
    return parent is loop
