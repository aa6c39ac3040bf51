"""`cute-fold-static`: an operation whose result is known becomes `cute.static`, and a comparison a constant. What
nothing uses any more goes."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from ..dialect.ops import AlgebraOp, CompareOp, MakeOp, StaticOp
from ..dialect.sugar import LeavesOp
from ..dialect.tensors import FieldsType
from ..dialect.types import is_static
from ..dialect.values import dynamic_leaves

FOLDED = (AlgebraOp, MakeOp, CompareOp, LeavesOp)


def fold_static(module: ModuleOp) -> None:
    """Folds in place."""
    for op in [op for op in module.walk() if isinstance(op, FOLDED)]:
        if isinstance(op, AlgebraOp | MakeOp) and not isinstance(op.res.type, FieldsType) and is_static(op.res.type):
            Rewriter.replace_op(op, StaticOp(op.res.type))
        elif isinstance(op, CompareOp) and (known := op.known) is not None:
            Rewriter.replace_op(op, arith.ConstantOp(IntegerAttr.from_bool(known)))
        elif isinstance(op, LeavesOp) and not dynamic_leaves(op.arg.type):
            parts = [StaticOp(kind) for _, kind in op.leaves(op.arg.type)]
            Rewriter.replace_op(op, parts, [part.res for part in parts])
    for op in reversed(list(module.walk())):
        if _unused(op):
            Rewriter.erase_op(op)


def _unused(op: Operation) -> bool:
    return isinstance(op, AlgebraOp | CompareOp | MakeOp | StaticOp) and not op.res.first_use
