"""`cute-expand-atoms`: a copy or a product of tiles becomes one call of its atom for each part.

To look at: `cute-lower` takes a copy or a product as it is, and finds the same parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialect.ops import OPERATIONS, StaticOp
from ..dialect.tensor_ops import CopyAtomCallOp, CopyOp, GemmOp, MmaAtomCallOp
from ..dialect.types import CoordType, TileType
from ..layout import Layout, idx2crd, size
from ..nvvm.emit import Emitter
from ..nvvm.location import blamed
from .parts import by_atom, is_split, products, repeats

Slice: Any = OPERATIONS["slice"]
Divide: Any = OPERATIONS["logical_divide"]


def expand_atoms(module: ModuleOp) -> None:
    """Expands in place."""
    for op in list(module.walk()):
        if isinstance(op, CopyOp):
            _expand(op, _copy_calls)
        elif isinstance(op, GemmOp):
            _expand(op, _mma_calls)


def _expand(op: Operation, calls: Any) -> None:
    builder = Emitter(InsertPoint.before(op))
    with blamed("cute-expand-atoms", op):
        for call in calls(op, builder):
            builder.insert(call).location = op.location
    Rewriter.erase_op(op)


def sliced(tensor: SSAValue, coordinate: Any, builder: Emitter) -> SSAValue:
    """The part of a tensor that a coordinate leaves open."""
    where = builder.insert(StaticOp(CoordType(coordinate))).res
    return builder.insert(Slice([tensor, where])).res


def _copy_calls(op: CopyOp, builder: Emitter) -> Iterator[Operation]:
    tiled, source, target, *bounds = op.args
    kind: Any = tiled.type
    tensors = [_divided(tensor, kind.data.atom, builder) for tensor in (source, target, *bounds[:1])]
    for number in range(size(repeats(_layout(tensors[0])))):
        parts = [sliced(tensor, _part(_layout(tensor), number), builder) for tensor in tensors]
        yield CopyAtomCallOp([tiled, *parts, *bounds[1:]])


def _divided(tensor: SSAValue, atom: Any, builder: Emitter) -> SSAValue:
    if by_atom(_layout(tensor), atom) == _layout(tensor):
        return tensor
    tile = builder.insert(StaticOp(TileType((Layout(atom.vector // atom.bits, 1),)))).res
    return builder.insert(Divide([tensor, tile])).res


def _layout(tensor: SSAValue) -> Layout:
    kind: Any = tensor.type
    return kind.data.layout


def _part(layout: Layout, number: int) -> Any:
    """The coordinate of the atom's values with a number."""
    shape = tuple(size(mode) for mode in repeats(layout))
    where = idx2crd(number, shape)
    assert isinstance(where, tuple)
    return ((None, where[0]), *where[1:]) if is_split(layout) else (None, *where)


def _mma_calls(op: GemmOp, builder: Emitter) -> Iterator[Operation]:
    (d, a, b), c, e = op.sides
    for m, n, k in products(_layout(d), _layout(a)):
        along_k = (k,) if len(_layout(a)) == 3 else ()
        coordinates = ((d, (m, n)), (a, (m, *along_k)), (b, (n, *along_k)))
        parts = [sliced(tensor, (None, *where), builder) for tensor, where in coordinates]
        added = [d] if k else c  # the first step along K has made D
        last = [parts[0] if one is d else sliced(one, (None, m, n), builder) for one in added]
        words = [sliced(one, (None, m, *along_k), builder) for one in e]
        yield MmaAtomCallOp([op.args[0], *parts, *last, *words])
