"""Passes of MLIR under their names there, as xDSL has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import Func
from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.loop_invariant_code_motion import LoopInvariantCodeMotionPass
from xdsl.transforms.reconcile_unrealized_casts import ReconcileUnrealizedCastsPass

from ..nvvm.parse import base_level
from .canonicalize import canonicalize


def _run(kind: type[ModulePass]) -> Callable[[ModuleOp], None]:
    return lambda module: kind().apply(_context(), module)


@cache
def _context() -> Context:
    """The dialects whose patterns the passes may need."""
    made = base_level()
    made.load_dialect(Func)
    return made


def _canonicalize(module: ModuleOp) -> None:
    """`canonicalize`: `cute-canonicalize`, then the patterns of the other dialects."""
    canonicalize(module)
    _run(CanonicalizePass)(module)


UPSTREAM: Mapping[str, Callable[[ModuleOp], None]] = {
    "canonicalize": _canonicalize,
    "cse": _run(CommonSubexpressionElimination),
    "loop-invariant-code-motion": _run(LoopInvariantCodeMotionPass),
    "reconcile-unrealized-casts": _run(ReconcileUnrealizedCastsPass),
}
