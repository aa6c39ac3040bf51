"""Products: a layout repeated over another one.

The six differ in how they group the same modes.
"""

from __future__ import annotations

from typing import Any

from .complement import complement
from .compose import Tile, by_mode, composition
from .divide import zip_pairs
from .layout import Layout, coalesce, cosize, leaves, make_layout, size
from .leaves import Basis, LayoutError, ceil_div
from .tuples import IntTuple, flatten, like, product, text


def logical_product(block: Layout, tiler: Layout | int | Tile) -> Layout:
    """`(block, tiler)`: a copy of the block for each position of the tiler, laid out where the block leaves room.

    A block may be padded. If it steps along coordinates, its copies follow along them. A tuple multiplies the first
    modes one by one. Raises LayoutError if the tiler does not fit.
    """
    if isinstance(tiler, tuple):
        return by_mode(logical_product, block, tiler)
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
    if any(isinstance(stride, Basis) for _, stride in leaves(block)):
        return make_layout(block, composition(complement(block), tile))
    return make_layout(block, composition(complement(block, size(block) * cosize(tile), padded=True), tile))


def zipped_product(block: Layout, tiler: Layout | int | Tile) -> Layout:
    """`((block, ...), (tiler, ...))`. Raises LayoutError."""
    made = logical_product(block, tiler)
    return zip_pairs(made, len(tiler)) if isinstance(tiler, tuple) else made


def tiled_product(block: Layout, tiler: Layout | int | Tile) -> Layout:
    """`((block, ...), tiler, ...)`. Raises LayoutError."""
    within, across = zipped_product(block, tiler)
    return make_layout(within, *across)


def flat_product(block: Layout, tiler: Layout | int | Tile) -> Layout:
    """`(block, ..., tiler, ...)`. Raises LayoutError."""
    within, across = zipped_product(block, tiler)
    return make_layout(*within, *across)


def blocked_product(block: Layout, tiler: Layout) -> Layout:
    """`((block, tiler), ...)`: blocks side by side along each mode. Raises LayoutError."""
    within, across = _padded_product(block, tiler)
    return make_layout(*(make_layout(a, b) for a, b in zip(within, across, strict=True)))


def raked_product(block: Layout, tiler: Layout) -> Layout:
    """`((tiler, block), ...)`: blocks interleaved along each mode, which is coalesced. Raises LayoutError."""
    within, across = _padded_product(block, tiler)
    return make_layout(*(coalesce(make_layout(b, a)) for a, b in zip(within, across, strict=True)))


def _padded_product(block: Layout, tiler: Layout) -> Layout:
    rank = max(len(block), len(tiler))
    return logical_product(append_to_rank(block, rank), append_to_rank(tiler, rank))


ONE = Layout(1, 0)


def append_to_rank(layout: Layout, rank: int, filler: Layout = ONE) -> Layout:
    """With modes `filler` at the end, so that there are `rank`. Raises LayoutError if there are more already."""
    return make_layout(*layout, *_fillers(layout, rank, filler))


def prepend_to_rank(layout: Layout, rank: int, filler: Layout = ONE) -> Layout:
    """With modes `filler` at the beginning, so that there are `rank`. Raises LayoutError if there are more already."""
    return make_layout(*_fillers(layout, rank, filler), *layout)


def _fillers(layout: Layout, rank: int, filler: Layout) -> list[Layout]:
    if len(layout) > rank:
        raise LayoutError(f"{layout} has more than {rank} modes")
    return [filler] * (rank - len(layout))


def make_ordered_layout(shape: IntTuple, order: IntTuple) -> Layout:
    """A layout without gaps whose strides grow with the order of its leaves: `(2,3)` and `(1,0)` make `(2,3):(3,1)`.

    A number of the order that stands for several leaves orders them from left to right. A size of 1 has stride 0.
    Raises LayoutError if the order has more or fewer modes than the shape.
    """
    ranks = _ranks(shape, order)
    strides: dict[int, Any] = {}
    step: Any = 1
    extents = flatten(shape)
    for leaf in sorted(range(len(extents)), key=ranks.__getitem__):
        strides[leaf] = 0 if extents[leaf] == 1 else step
        step = step * extents[leaf]
    return Layout(shape, like(iter([strides[leaf] for leaf in range(len(extents))]), shape))


def _ranks(shape: IntTuple, order: IntTuple) -> list[int]:
    if not isinstance(order, tuple):
        return [order] * len(flatten(shape))
    if not isinstance(shape, tuple) or len(shape) != len(order):
        raise LayoutError(f"the order {order} does not name each mode of {shape}")
    return [rank for extent, part in zip(shape, order, strict=True) for rank in _ranks(extent, part)]


def make_layout_like(layout: Layout) -> Layout:
    """A layout without gaps whose strides have the same order. Modes of stride 0 keep it, and a size of 1 has it.

    Strides that are not known come last, from left to right. Raises LayoutError for those along a coordinate.
    """
    pairs = leaves(layout)
    if any(isinstance(stride, Basis) for _, stride in pairs):
        raise LayoutError(f"{layout}: strides along coordinates have no order")
    made, step = list[Any]([0] * len(pairs)), 1
    for leaf in sorted(range(len(pairs)), key=lambda leaf: _rank_of(pairs[leaf][1])):
        extent, stride = pairs[leaf]
        if stride != 0 and extent != 1:
            made[leaf], step = step, step * extent
    return Layout(layout.shape, like(iter(made), layout.shape))


def _rank_of(stride: Any) -> tuple[bool, int]:
    return (False, stride) if isinstance(stride, int) else (True, 0)


def make_identity_layout(shape: IntTuple) -> Layout:
    """The layout that maps each coordinate to itself: each stride steps along its own mode. A single size has 1."""
    return Layout(shape, _identity(shape, ()))


def _identity(shape: IntTuple, path: tuple[int, ...]) -> IntTuple:
    if isinstance(shape, tuple):
        return tuple(_identity(extent, (*path, mode)) for mode, extent in enumerate(shape))
    return Basis(1, path) if path else 1


def tile_to_shape(block: Layout, shape: IntTuple, order: tuple[int, ...] | None = None) -> Layout:
    """The block repeated until it covers a shape, first along mode 0, or along the mode that `order` names first.

    Sizes that the block does not divide are rounded up. Raises LayoutError if the block has more modes, and if the
    order is no permutation of them.
    """
    target = shape if isinstance(shape, tuple) else (shape,)
    order = tuple(range(len(target))) if order is None else order
    if sorted(flatten(order)) != list(range(len(target))):
        raise LayoutError(f"{text(order)} does not name each of {len(target)} modes once")
    padded = append_to_rank(block, len(target))
    times = tuple(ceil_div(product(extent), product(mode.shape)) for extent, mode in zip(target, padded, strict=True))
    return blocked_product(padded, make_ordered_layout(times, order))
