"""`cute-expand-ops`: a copy or a product of tiles becomes one call of its atom for each part.

The parts follow from the layouts: the first mode is what an atom moves at once, all others are repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..atoms.copy_atom import CopyAtom
from ..dialect.ops import OPERATIONS, StaticOp
from ..dialect.tensor_ops import CopyAtomCallOp, CopyOp, GemmOp, MmaAtomCallOp, operand_counts
from ..dialect.types import CoordType, TileType
from ..layout import Layout, idx2crd, make_layout, size
from ..nvvm.location import blamed

Slice: Any = OPERATIONS["slice"]
Divide: Any = OPERATIONS["logical_divide"]


def expand_ops(module: ModuleOp) -> None:
    """Expands in place."""
    for op in list(module.walk()):
        if isinstance(op, CopyOp):
            _expand(op, _copy_calls)
        elif isinstance(op, GemmOp):
            _expand(op, _mma_calls)


def _expand(op: Operation, calls: Any) -> None:
    builder = Builder(InsertPoint.before(op))
    with blamed("cute-expand-ops", op):
        for call in calls(op, builder):
            builder.insert(call).location = op.location
    Rewriter.erase_op(op)


def sliced(tensor: SSAValue, coordinate: Any, builder: Builder) -> SSAValue:
    """The part of a tensor that a coordinate leaves open."""
    where = builder.insert(StaticOp(CoordType(coordinate))).res
    return builder.insert(Slice([tensor, where])).res


def _copy_calls(op: CopyOp, builder: Builder) -> Iterator[Operation]:
    tiled, source, target, *bounds = op.args
    kind: Any = tiled.type
    tensors = [_by_atom(tensor, kind.data.atom, builder) for tensor in (source, target, *bounds[:1])]
    for number in range(_repeats(tensors[0])):
        parts = [sliced(tensor, _part(tensor, number), builder) for tensor in tensors]
        yield CopyAtomCallOp([tiled, *parts, *bounds[1:]])


def _by_atom(tensor: SSAValue, atom: CopyAtom, builder: Builder) -> SSAValue:
    """The tensor with its first mode split into what the atom moves at once, and the rest."""
    if atom.matrix is not None:
        return tensor  # its values are split where the tensor is divided among the threads
    count, first = atom.vector // atom.bits, _layout(tensor)[0]
    if size(first) == count or (_split(tensor) and size(first[0]) == count):
        return tensor
    tile = builder.insert(StaticOp(TileType((Layout(count, 1),)))).res
    return builder.insert(Divide([tensor, tile])).res


def _layout(tensor: SSAValue) -> Layout:
    kind: Any = tensor.type
    return kind.data.layout


def _split(tensor: SSAValue) -> bool:
    """True if the first mode holds the atom's values and others: `((value, other), ...)`."""
    first = _layout(tensor)[0]
    return isinstance(first.shape, tuple) and len(first) == 2 and isinstance(_layout(tensor).shape, tuple)


def _others(tensor: SSAValue) -> Layout:
    layout = _layout(tensor)
    first = [layout[0][1]] if _split(tensor) else []
    return make_layout(*first, *list(layout)[1:])


def _repeats(tensor: SSAValue) -> int:
    return size(_others(tensor))


def _part(tensor: SSAValue, number: int) -> Any:
    """The coordinate of the atom's values with a number."""
    shape = tuple(size(mode) for mode in _others(tensor))
    where = idx2crd(number, shape)
    assert isinstance(where, tuple)
    return ((None, where[0]), *where[1:]) if _split(tensor) else (None, *where)


def _mma_calls(op: GemmOp, builder: Builder) -> Iterator[Operation]:
    """Along K last to first index of the loops; along N back and forth, so that registers of A and B are used again."""
    tiled, d, a, b, *c = op.args
    m_count, n_count = operand_counts(_layout(d))
    k_count = operand_counts(_layout(a))[1]
    for k in range(k_count):
        along_k = (k,) if len(_layout(a)) == 3 else ()
        for m in range(m_count):
            for step in range(n_count):
                n = n_count - 1 - step if m % 2 else step
                coordinates = ((d, (m, n)), (a, (m, *along_k)), (b, (n, *along_k)))
                parts = [sliced(tensor, (None, *where), builder) for tensor, where in coordinates]
                added = [d] if k else c  # the first step along K has made D
                last = [parts[0] if one is d else sliced(one, (None, m, n), builder) for one in added]
                yield MmaAtomCallOp([tiled, *parts, *last])
