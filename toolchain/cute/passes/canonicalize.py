"""`cute-canonicalize`: values that are known to be the same become one.

A part of what was just put together is the part itself: the shape of `make_layout(shape, stride)`, the pointer of
`make_view(pointer, layout)`. Conversions there and back go, and so does a second operation with the same operands.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ..dialect.ops import AlgebraOp, CompareOp, MakeOp, StaticOp

# An operation on what another one made: which operand of that it is.
PARTS: Mapping[tuple[str, str], int] = {
    ("get_shape", "make_layout"): 0,
    ("get_stride", "make_layout"): 1,
    ("composed_get_inner", "make_composed_layout"): 0,
    ("composed_get_offset", "make_composed_layout"): 1,
    ("composed_get_outer", "make_composed_layout"): 2,
    ("get_iter", "make_view"): 0,
    ("get_layout", "make_view"): 1,
    ("to_shape", "to_int_tuple"): 0,
    ("to_stride", "to_int_tuple"): 0,
    ("to_coord", "to_int_tuple"): 0,
    ("to_int_tuple", "to_shape"): 0,
    ("to_int_tuple", "to_stride"): 0,
    ("to_int_tuple", "to_coord"): 0,
}
IDEMPOTENT = ("coalesce", "flatten", "filter", "filter_zeros")  # the second time they change nothing
PURE = (AlgebraOp, CompareOp, MakeOp, StaticOp)
Key = tuple[object, ...]


def canonicalize(module: ModuleOp) -> None:
    """Rewrites in place."""
    for op in list(module.walk()):
        if isinstance(op, AlgebraOp) and (same := _same(op)) is not None and same.type == op.res.type:
            Rewriter.replace_op(op, [], [same])
    for region in module.regions:
        for block in region.blocks:
            _join(block, {})
    for op in reversed(list(module.walk())):
        if isinstance(op, PURE) and not op.res.first_use:
            Rewriter.erase_op(op)


def _same(op: AlgebraOp) -> SSAValue | None:
    """A value that the result is equal to."""
    name, maker = _short(op), op.args[0].owner
    if name == "to_int_tuple" and op.args[0].type == op.res.type:
        return op.args[0]
    if not isinstance(maker, AlgebraOp):
        return None
    made = _short(maker)
    if name == made and name in IDEMPOTENT and len(op.args) == len(maker.args) == 1:
        return maker.res
    part = PARTS.get((name, made))
    return None if part is None else maker.args[part]


def _short(op: Operation) -> str:
    return op.name.removeprefix("cute.")


def _join(block: Block, before: Mapping[Key, Operation]) -> None:
    """Operations of a block that were done before, there or in a block around it."""
    known = dict(before)
    for op in list(block.ops):
        if isinstance(op, PURE):
            key = _key(op)
            if (first := known.get(key)) is not None:
                Rewriter.replace_op(op, [], list(first.results))
            else:
                known[key] = op
        for region in op.regions:
            for inner in region.blocks:
                _join(inner, known)


def _key(op: Operation) -> Key:
    attributes: list[tuple[str, Attribute]] = sorted(op.properties.items())
    return (op.name, tuple(op.operands), tuple(result.type for result in op.results), tuple(attributes))
