"""`cute-desugar`: operations on whole tensors, on atoms as values and on leaves become simpler ones of `cute`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialect import atom_ops, sugar
from ...nvvm.location import blamed
from . import atoms, leaves, printing, tensors
from .place import Placed

Write = Callable[[Any, Placed], "list[SSAValue]"]
WRITERS: Mapping[type[Operation], Write] = {
    sugar.FillOp: tensors.fill,
    sugar.ClearOp: tensors.clear,
    sugar.AxpbyOp: tensors.axpby,
    sugar.GemvOp: tensors.gemv,
    sugar.LoadVecOp: tensors.load_vec,
    sugar.StoreVecOp: tensors.store_vec,
    sugar.MakeFragmentLikeOp: tensors.fragment,
    sugar.MmaFragmentAOp: tensors.mma_fragment,
    sugar.MmaFragmentBOp: tensors.mma_fragment,
    sugar.MmaFragmentCOp: tensors.mma_fragment,
    sugar.GetLeavesOp: leaves.take_apart,
    sugar.GetLayoutsFromTileOp: leaves.take_apart,
    sugar.PrintOp: printing.print_value,
    sugar.MakeTiledMmaOp: atoms.tiled,
    sugar.MakeTiledCopyOp: atoms.tiled,
    atom_ops.AtomGetValueOp: atoms.get_value,
    atom_ops.TmaCopyOp: atoms.tma_copy,
}


def desugar(module: ModuleOp) -> None:
    """Rewrites in place. Raises SourceError for an atom whose value is not known."""
    for op in list(module.walk()):
        with blamed("cute-desugar", op):
            if (write := WRITERS.get(type(op))) is not None:
                Rewriter.replace_op(op, [], write(op, Placed(op, InsertPoint.before(op))))
    for op in reversed(list(module.walk())):
        if isinstance(op, atoms.MADE) and not any(result.first_use for result in op.results):
            Rewriter.erase_op(op)
