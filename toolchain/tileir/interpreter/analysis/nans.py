"""The bits of NaNs.

Loads, stores, bitcasts and all other moves keep them. Arithmetic on a GPU makes one NaN: 0x7fffffff in f32, 0x7fff in
16 bits, 0x7f in 8. numpy makes others. They are replaced where something reads their bits: a store, a bitcast, a print,
an atomic. Arithmetic reads none, so nothing is replaced between two operations of arithmetic, which would cost time.
NaNs of f64 stay as numpy makes them: a GPU too can keep their payload.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from ..numbers.elements import Element
from .fields import short_name, tile_of
from .taint import flows

# What gives the same for all NaNs, or no float.
_ARITHMETIC = frozenset((
    "absf", "addf", "atan2", "ceil", "cmpf", "cos", "cosh", "divf", "exp", "exp2", "floor", "fma", "fpowf", "fpowi",
    "ftof", "ftoi", "log", "log2", "maxf", "minf", "mmaf", "mulf", "negf", "remf", "rsqrt", "sin", "sinh", "sqrt",
    "subf", "tan", "tanh",
))  # fmt: skip
_MOVES = frozenset((
    "assume", "break", "broadcast", "cat", "continue", "extract", "for", "if", "insert", "loop", "permute", "reduce",
    "reshape", "scan", "select", "yield",
))  # fmt: skip


def keeps(source: Element, target: Element) -> bool:
    """True if a conversion keeps the bits of a NaN. A GPU shifts those of bf16, and does nothing to tf32."""
    return source.name in ("bf16", "tf32") and target.name == "f32"


def carries(source: Element, target: Element, mode: str) -> bool:
    """True if a conversion makes the NaN that numpy makes too: of f64's with their payload."""
    return source.name == "f64" and (target.name == "f32" or (target.name == "f16" and mode == "nearest_even"))


def _moves(op: Operation) -> bool:
    name = short_name(op)
    return name in _MOVES or (name == "ftof" and keeps(*(tile_of(v).element for v in (*op.operands, *op.results))))


def seen(body: Block) -> frozenset[SSAValue]:
    """The values of `body` whose bits something reads, directly or after moves."""
    ops = list(body.walk())
    moves = [op for op in reversed(ops) if _moves(op)]
    readers = (op for op in ops if short_name(op) not in _ARITHMETIC | _MOVES)
    found = {operand for op in readers for operand in op.operands}
    size = -1
    while len(found) != size:
        size = len(found)
        for op in moves:
            found.update(source for source, target in flows(op) if target in found)
    return frozenset(found)


@functools.cache
def standard(element: Element) -> Callable[[Any], Any]:
    """Replaces NaNs in `element`'s compute dtype by the one that arithmetic makes, if there is one."""
    nan = element.nan
    if nan is None:
        return lambda x: x

    def one_nan(x: Any) -> Any:
        largest = np.maximum.reduce(x, axis=None)  # NaN if there is one: the fastest way to see it
        return x if largest == largest else np.where(np.isnan(x), nan, x)[()]

    return one_nan
