"""Finds the values of an entry that can hold unspecified elements, and combines their poison masks.

Unspecified elements come from loads outside a tensor, and from masked-off pointer loads, without a padding value. They
are harmless until used: a kernel may load rows beyond the end and never store them. So a mask follows them through
arithmetic, and only a branch, an address, an index or a result that depends on one is an error.

A mask has a level for each element. 0: specified. PADDING: it was read outside, or is made of such elements one by one:
it may be stored, and its memory is unspecified from then on (memory/unspecified.py). MIXED: a reduction, a scan or a
product made it of unspecified elements and of others. It stands for a result, and must not be stored. A mask without
MIXED is an array of bool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from ..numbers.elements import Array
from .fields import is_tile, may_be_unspecified, reads_memory, short_name, stored

_LOOPS = ("for", "loop")
PADDING, MIXED = np.int8(1), np.int8(2)


def tainted(body: Block) -> frozenset[SSAValue]:
    """All values of `body` that an unspecified element can reach, also by way of memory."""
    ops = list(body.walk())
    found = _reached(ops, {op.results[0] for op in ops if may_be_unspecified(op)})
    if any(stores_any(op, found) for op in ops):
        found = _reached(ops, found | {op.results[0] for op in ops if reads_memory(op)})
    return frozenset(found)


def sources(body: Block, use: Operation) -> Iterable[Operation]:
    """The loads of `body` whose unspecified elements can reach the operands of `use`."""
    ops = list(body.walk())
    for op in ops:
        if may_be_unspecified(op) and not set(use.operands).isdisjoint(_reached(ops, {op.results[0]})):
            yield op


def stores_any(op: Operation, values: Collection[SSAValue]) -> bool:
    """True if an op stores one of these values."""
    return stored(op) in values


def _reached(ops: Iterable[Operation], sources: set[SSAValue]) -> set[SSAValue]:
    found = set(sources)
    size = -1
    while len(found) != size:
        size = len(found)
        for op in ops:
            for source, target in flows(op):
                if source in found and is_tile(target):
                    found.add(target)
    return found


def flows(op: Operation) -> Iterable[tuple[SSAValue, SSAValue]]:
    """The pairs (value, value that depends on it) of one op."""
    name = short_name(op)
    if name == "for":  # it gives what it carries, and without a turn what it began with
        arguments = op.regions[0].blocks[0].args
        for source, argument, result in zip(op.operands[3:], arguments[1:], op.results, strict=True):
            yield source, argument
            yield source, result
        for source in op.operands[:3]:
            yield source, arguments[0]
    elif name == "loop":  # its results come from `break` alone, and may differ in number from what it carries
        yield from zip(op.operands, op.regions[0].blocks[0].args, strict=True)
    elif name == "continue":
        loop = enclosing_loop(op)
        is_for = short_name(loop) == "for"
        yield from zip(op.operands, loop.regions[0].blocks[0].args[is_for:], strict=True)
        if is_for:
            yield from zip(op.operands, loop.results, strict=True)
    elif name == "break":
        yield from zip(op.operands, enclosing_loop(op).results, strict=True)
    elif name == "yield":
        parent = op.parent_op()
        assert parent is not None
        yield from zip(op.operands, parent.results, strict=True)
    elif name != "if":
        for region in op.regions:  # reduce, scan
            for nested in region.walk():
                yield from ((source, result) for source in nested.operands for result in op.results)
        yield from ((source, result) for source in op.operands for result in op.results)


def enclosing_loop(op: Operation) -> Operation:
    """The innermost loop around an op."""
    parent = op.parent_op()
    while parent is not None and short_name(parent) not in _LOOPS:
        parent = parent.parent_op()
    assert parent is not None, f"{short_name(op)} outside a loop"
    return parent


def either(*masks: Any) -> Any:
    """The union of masks, None meaning nowhere."""
    found: Any = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else np.maximum(found, mask)
    return found


def some(mask: Any) -> bool:
    """True if a mask is True anywhere. Rarely called: only in kernels that are wrong or mask by hand."""
    return bool(np.any(mask))


def chosen(condition: Any, at_condition: Any, if_true: Any, if_false: Any) -> Any:
    """The poison of a select: that of the chosen side, and that of the condition."""
    if if_true is None and if_false is None:
        return at_condition
    picked = np.where(condition, False if if_true is None else if_true, False if if_false is None else if_false)
    return either(at_condition, picked if picked.any() else None)


def reduced(masks: Iterable[Any], shape: tuple[int, ...], dim: int) -> Any:
    """The poison of a reduction: a result is poisoned if any element along `dim` is."""
    mask = either(*masks)
    return None if mask is None else _joined(np.broadcast_to(mask, shape), dim)


def _joined(mask: Array, axis: int, *, keepdims: bool = False) -> Array:
    """The level of what is made of all elements along an axis: padding if it is made of padding alone."""
    level = mask.max(axis=axis, keepdims=keepdims)
    mixed = (level > 0) & (mask.min(axis=axis, keepdims=keepdims) == 0)
    return np.where(mixed, MIXED, level)


def scanned(masks: Iterable[Any], shape: tuple[int, ...], dim: int, reverse: bool) -> Any:
    """The poison of a scan: an element is mixed if one before it is poisoned, and itself is not."""
    mask = either(*masks)
    if mask is None:
        return None
    full = np.flip(np.broadcast_to(mask, shape), dim) if reverse else np.broadcast_to(mask, shape)
    swept = np.maximum.accumulate(full, axis=dim)
    swept = np.where((swept > 0) & (full == 0), MIXED, swept)
    return np.flip(swept, dim) if reverse else swept


def multiplied(lhs: Any, rhs: Any, acc: Any) -> Any:
    """The poison of a matrix product: an element poisons its whole row if it is in the left operand, its whole column
    if it is in the right one."""
    rows: Array | None = None if lhs is None else _joined(lhs, -1, keepdims=True)
    columns: Array | None = None if rhs is None else _joined(rhs, -2, keepdims=True)
    return either(rows, columns, acc)
