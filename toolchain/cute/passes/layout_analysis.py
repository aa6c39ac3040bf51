"""`cute-layout-analysis`: writes what follows from the layouts beside the operations, and changes nothing else.

A layout or a tensor whose numbers are known gets `cute.size`, `cute.cosize` and `cute.contiguous`, the elements that
lie side by side from the first on. A copy gets `cute.vector_bits`: the most that one instruction can move for both
sides.
"""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation, SSAValue

from ..dialect.tensor_ops import CopyOp
from ..dialect.tensors import MemRefType, Tensor
from ..dialect.types import LayoutType, is_static
from ..layout import Layout, coalesce, cosize, size
from ..layout import tuples as nested
from ..layout.leaves import divisor

WIDEST = 128  # bits that one instruction moves


def layout_analysis(module: ModuleOp) -> None:
    """Annotates in place."""
    for op in module.walk():
        if isinstance(op, CopyOp):
            _write(op, vector_bits=_vector_bits(_tensor(op.args[1]), _tensor(op.args[2])))
        elif len(op.results) == 1 and isinstance(kind := op.results[0].type, LayoutType | MemRefType):
            layout: Layout = kind.data if isinstance(kind, LayoutType) else kind.data.layout
            if is_static(LayoutType(layout)) and "@" not in str(layout):
                _write(op, size=size(layout), cosize=cosize(layout), contiguous=contiguous(layout))


def _tensor(value: SSAValue) -> Tensor:
    kind: Any = value.type
    return kind.data


def contiguous(layout: Layout) -> int:
    """The elements that lie side by side from the first on."""
    first = coalesce(layout)
    modes = list(first) if isinstance(first.shape, tuple) else [first]
    shape, stride = modes[0].shape, modes[0].stride
    return shape if stride == 1 and isinstance(shape, int) else 1


def _vector_bits(source: Tensor, target: Tensor) -> int:
    """By elements side by side, by the alignment of both pointers, and by the strides to the next vector."""
    elements = math.gcd(contiguous(source.layout), contiguous(target.layout))
    element_bytes = source.pointer.bytes
    widest = math.gcd(WIDEST // 8, elements * element_bytes)
    for side in (source, target):
        if side.pointer.space == "rmem":
            continue
        widest = math.gcd(widest, side.pointer.align)
        for stride in nested.flatten(coalesce(side.layout).stride):
            if stride not in (0, 1):
                widest = math.gcd(widest, divisor(stride) * element_bytes)
    return 8 * max(widest, element_bytes)


def _write(op: Operation, **facts: int) -> None:
    for name, value in facts.items():
        op.attributes[f"cute.{name}"] = IntegerAttr(value, i64)
