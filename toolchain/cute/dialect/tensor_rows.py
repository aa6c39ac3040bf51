"""The operations on tensors that move or divide them: views, tiles, and what a thread holds. No element is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import layout as algebra
from ..atoms.tiled import retile
from ..layout import Dynamic, Layout, idx2crd, right_inverse, slice_and_offset, zipped_divide
from ..layout import tuples as nested
from .algebra import ONE, Infer, OpForm, picked
from .tensors import BITS, Coordinates, CoordTensorType, MemRefType, PtrType, Tensor
from .types import ComposedLayoutType, CoordType, CuteType, IntTupleType, LayoutType, ShapeType


def _slice(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    kind, coordinate = kinds[0], kinds[1].data
    if isinstance(kind, MemRefType | CoordTensorType):
        made, offset = slice_and_offset(kind.data.layout, coordinate)
        return type(kind)(kind.data.moved(offset, made))
    if isinstance(kind, ComposedLayoutType):
        part = algebra.slice_composed(kind.data, coordinate)
        if isinstance(part, Layout):
            return LayoutType(Layout(part.shape, nested.transform(_undivided, part.stride)))
        return ComposedLayoutType(replace(part, offset=nested.transform(_undivided, part.offset)))
    return picked(kind, coordinate, is_open=True)


def _undivided(leaf: Any) -> Any:
    """A computed number of a result that the text does not name: without what it can be divided by, as in CuTe IR."""
    return Dynamic(leaf.width) if type(leaf) is Dynamic else leaf


def _domain_offset(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    tensor = kinds[1].data
    return type(kinds[1])(tensor.moved(tensor.layout(kinds[0].data), tensor.layout))


def _add_offset(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    return PtrType(kinds[0].data.moved(kinds[1].data, Layout(1, 0)))


def _local_tile(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    kind, tile, coordinate = kinds
    made, offset = algebra.local_tile(kind.data.layout, tile.data, coordinate.data)
    return type(kind)(kind.data.moved(offset, made))


def _local_partition(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    """What a thread of a layout of threads takes of each mode in turn; the thread may be a number of the kernel."""
    kind, threads, thread = kinds[0], kinds[1].data, kinds[2].data
    counts = tuple(nested.product(mode.shape) for mode in threads)
    tiles = zipped_divide(kind.data.layout, counts)
    place = idx2crd(right_inverse(threads)(thread), counts)
    made, offset = slice_and_offset(tiles, (place, tuple(None for _ in range(len(tiles[1])))))
    return type(kind)(kind.data.moved(offset, made))


def _partition(which: str) -> Infer:
    """The part of a tensor that a thread holds, by a tiled copy or a tiled MMA."""

    def infer(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
        tiled, tensor, thread = kinds
        threads, values = tiled.data.partition(which, tensor.data.layout)
        return type(tensor)(tensor.data.moved(threads(thread.data), values))

    return infer


def _partition_shape(which: str) -> Infer:
    def infer(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
        return ShapeType(kinds[0].data.partition(which, Layout(kinds[1].data))[1].shape)

    return infer


def _retile(kinds: Sequence[Any], numbers: Sequence[int]) -> CuteType:
    copy, mma, tensor, tile = kinds
    whole = Layout(tile.data)
    copied, computed = copy.data.partition("D", whole)[1], mma.data.partition("abc"[numbers[0]], whole)[1]
    return type(tensor)(tensor.data.moved(0, retile(copied, computed, tensor.data.layout)))


def _identity_tensor(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    made = algebra.make_identity_layout(kinds[0].data)
    return CoordTensorType(Coordinates((0,) * len(made), made))


def _recast(kinds: Sequence[Any], numbers: Sequence[int]) -> CuteType:
    tensor, (bits,) = kinds[0].data, numbers
    old = BITS[tensor.pointer.dtype]
    place = tensor.place
    if place is not None:
        place = replace(place, high=place.high * old // bits, low=place.low * old // bits)
    made = replace(tensor.pointer, dtype=f"i{bits}")
    return MemRefType(Tensor(made, algebra.recast_layout(tensor.layout, bits, old), place))


THREAD = ("tensor", "coord")
TENSOR_ROWS: dict[str, OpForm] = {
    "slice": OpForm(
        ("layout, composed_layout, tuple or tensor", "coord"),
        "The modes that a coordinate leaves open, `_`; of a tensor, the part from there on.",
        _slice, infers=True, kinds=(None, (CoordType,)),
    ),
    "domain_offset": OpForm(
        ("coord", "tensor"), "The tensor from a coordinate on, with the same layout.", _domain_offset, infers=True
    ),
    "get_layout": OpForm(("tensor",), "The layout of a tensor.", lambda k, _: LayoutType(k[0].data.layout), plain=True),
    "get_iter": OpForm(
        ("memref",), "The pointer to the first element.", lambda k, _: PtrType(replace(k[0].data, layout=Layout(1, 0))),
        plain=True,
    ),
    "deref_arith_tuple_iter": OpForm(
        ("coord_tensor",), "The coordinate of the first element.", lambda k, _: IntTupleType(k[0].data.offset),
        plain=True,
    ),
    "add_offset": OpForm(("ptr", "int_tuple"), "The pointer so many elements further.", _add_offset, infers=True),
    "make_view": OpForm(
        ("ptr", "layout"), "The tensor of a pointer and a layout.",
        lambda k, _: MemRefType(replace(k[0].data, layout=k[1].data)), infers=True,
    ),
    "recast_view": OpForm(
        ("memref",), "The same bytes as integers of so many bits.", _recast, ONE, infers=True
    ),
    "make_identity_tensor": OpForm(
        ("shape",), "The tensor whose elements are their coordinates.", _identity_tensor, infers=True
    ),
    "local_tile": OpForm(
        ("tensor", "tile", "coord"), "The tile at a coordinate of the tiles; `_` keeps the tiles of a mode as a mode "
        "behind.", _local_tile, infers=True,
    ),
    "local_partition": OpForm(
        ("tensor", "layout", "coord"), "What a thread of a layout of threads takes of each mode in turn.",
        _local_partition, infers=True,
    ),
    "tiled.copy.partition_S": OpForm(
        ("tiled_copy", *THREAD), "What a thread reads of a tensor.", _partition("S"), infers=True
    ),
    "tiled.copy.partition_D": OpForm(
        ("tiled_copy", *THREAD), "What a thread writes of a tensor.", _partition("D"), infers=True
    ),
    "tiled.copy.retile": OpForm(
        ("tiled_copy", "tiled_mma", "memref", "shape"), "The registers that an MMA holds of a tile, in the order in "
        "which a copy moves them. The number says the operand: 0, 1 or 2 for A, B or C.", _retile, ONE, infers=True,
    ),
    **{
        f"tiled.mma.partition_{which.upper()}": OpForm(
            ("tiled_mma", *THREAD), f"What a thread holds of operand {which.upper()}.", _partition(which), infers=True
        )
        for which in "abce"
    },
    **{
        f"tiled.mma.partition_shape_{which.upper()}": OpForm(
            ("tiled_mma", "shape"), f"The shape of what a thread holds of operand {which.upper()} of a tile.",
            _partition_shape(which),
        )
        for which in "abce"
    },
}  # fmt: skip
