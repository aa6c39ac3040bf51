"""The operations on layouts: their parts, the algebra, divisions and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import layout as algebra
from ..layout import Basis, ComposedLayout, Layout, LayoutError
from ..layout import tuples as nested
from ..layout.leaves import is_static as is_known
from .algebra import RANGE, Infer, OpForm, outer, picked, same
from .types import (
    ComposedLayoutType,
    CoordType,
    CuteType,
    IntTupleType,
    LayoutType,
    ShapeType,
    StrideType,
    SwizzleType,
    TileType,
    checked_composed,
    is_static,
)


def _unary(function: Callable[[Layout], Layout]) -> Infer:
    return lambda kinds, _: LayoutType(function(kinds[0].data))


def _known_left(function: Callable[[Layout, Any], Layout]) -> Infer:
    """A product: how many copies follow one another depends on all numbers of the block. Its tiler is a number, or
    known where the copies follow along coordinates."""

    def infer(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
        block, tiler = outer(kinds[0]), kinds[1]
        if not is_known(*nested.flatten((block.shape, block.stride))):
            raise LayoutError(f"{block}: all numbers of the layout that is repeated must be known")
        if any(isinstance(stride, Basis) for stride in nested.flatten(block.stride)) and not is_static(tiler):
            raise LayoutError(f"{tiler}: along coordinates a layout is repeated a known number of times")
        if isinstance(tiler, LayoutType) and any(isinstance(leaf, Basis) for leaf in nested.flatten(tiler.data.stride)):
            raise LayoutError(f"{tiler}: a layout is repeated by numbers, not by coordinates")
        return same(kinds[0], function(block, tiler.data))

    return infer


def _divided(function: Callable[[Layout, Any], Layout]) -> Infer:
    """A divide. What a tile leaves out is known where its strides are, or it has one mode."""

    def infer(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
        kind, tiler = kinds
        _check_tile(tiler.data, alone=True)
        return same(kind, function(outer(kind), tiler.data))

    return infer


def _check_tile(tile: Any, *, alone: bool) -> None:
    """Raises LayoutError for a layout in a tile that has no complement."""
    if isinstance(tile, tuple):
        for part in tile:
            _check_tile(part, alone=False)
    if not isinstance(tile, Layout):
        return
    strides = nested.flatten(tile.stride)
    if not alone and any(isinstance(stride, Basis) for stride in strides):
        raise LayoutError(f"{tile}: in a tile of several parts strides are numbers, not steps along a coordinate")
    if len(tile) > 1 and not is_known(*strides):
        raise LayoutError(f"{tile}: a tile of several modes has known strides")


def _composition(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    first, inner = kinds
    # A shape is a tile: its sizes compose mode by mode.
    return same(first, algebra.composition(outer(first), inner.data))


def _coalesce(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    profile = kinds[1].data if len(kinds) > 1 else None
    return same(kinds[0], algebra.coalesce(outer(kinds[0]), profile))


def _complement(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    return LayoutType(algebra.complement(kinds[0].data, kinds[1].data if len(kinds) > 1 else None))


def _flatten(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    kind = kinds[0]
    if isinstance(made := outer(kind), Layout):
        return same(kind, algebra.flat(made))
    leaves = _tile_leaves(kind.data) if isinstance(kind, TileType) else nested.flatten(kind.data)
    return type(kind)(tuple(leaves))


def _tile_leaves(tile: Any) -> list[Any]:
    return [leaf for part in tile for leaf in _tile_leaves(part)] if isinstance(tile, tuple) else [tile]


def _inner(composed: ComposedLayout) -> CuteType:
    return LayoutType(composed.inner) if isinstance(composed.inner, Layout) else SwizzleType(composed.inner)


def _tile_to_shape(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    order = kinds[2].data if kinds[2:] else None
    return same(kinds[0], algebra.tile_to_shape(outer(kinds[0]), kinds[1].data, order))


def _recast(kinds: Sequence[Any], numbers: Sequence[int]) -> CuteType:
    kind = kinds[0]
    if isinstance(kind, ComposedLayoutType):
        return ComposedLayoutType(algebra.recast_composed(kind.data, *numbers))
    return LayoutType(algebra.recast_layout(kind.data, *numbers))


def _layout_like(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    kind = kinds[0]
    if isinstance(kind, ComposedLayoutType) and isinstance(kind.data.inner, Layout):
        raise LayoutError(f"{kind}: the order of its offsets is that of its inner layout; under a swizzle it is known")
    return LayoutType(algebra.make_layout_like(outer(kind)))


def _ordered(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    if not is_static(kinds[1]):
        raise LayoutError(f"{kinds[1]}: the order must be known")
    return LayoutType(algebra.make_ordered_layout(kinds[0].data, kinds[1].data))


def _shape(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    kind = kinds[0]
    return ShapeType(_tile_shape(kind.data) if isinstance(kind, TileType) else outer(kind).shape)


def _tile_shape(tile: Any) -> Any:
    if tile is None:
        raise LayoutError("a mode that a tile leaves whole has no shape")
    return tuple(map(_tile_shape, tile)) if isinstance(tile, tuple) else tile.shape


def _dice(kinds: Sequence[Any], _: Sequence[int]) -> CuteType:
    kind, where = kinds
    if not is_static(where):
        raise LayoutError(f"{where}: which modes are kept must be known")
    return picked(kind, where.data, is_open=False)


DIVIDES = {
    "logical": "Splits each mode by a tile: (within the tile, tiles).",
    "zipped": "As logical_divide, with the modes within the tile first: ((within, ...), (tiles, ...)).",
    "tiled": "As zipped_divide, with the modes of the tiles at the top: ((within, ...), tiles, ...).",
    "flat": "As zipped_divide, with all modes at the top: (within, ..., tiles, ...).",
}
PRODUCTS = {
    "logical": "Repeats a layout by another: (the layout, the repetition).",
    "zipped": "As logical_product, mode by mode, with the layout's modes first: ((layout, ...), (repetition, ...)).",
    "tiled": "As zipped_product, with the modes of the repetition at the top: ((layout, ...), repetition, ...).",
    "flat": "As zipped_product, with all modes at the top.",
    "blocked": "Repeats a layout in blocks: each mode is (within the block, blocks).",
    "raked": "Repeats a layout interleaved: each mode is (blocks, within the block).",
}
LAYOUT, BOTH = ("layout",), ("layout or composed_layout",)
LAYOUT_ROWS: dict[str, OpForm] = {
    "make_layout": OpForm(
        ("shape", "stride"), "A layout of a shape and strides, nested alike.",
        lambda k, _: LayoutType(Layout(k[0].data, k[1].data)), kinds=((ShapeType,), (StrideType,)),
    ),
    "make_composed_layout": OpForm(
        ("layout or swizzle", "int_tuple", "layout"),
        "The layout `inner o offset o outer`: c -> inner(offset + outer(c)).",
        lambda k, _: ComposedLayoutType(checked_composed(ComposedLayout(k[0].data, k[1].data, k[2].data))),
        kinds=((LayoutType, SwizzleType), (IntTupleType,), (LayoutType,)),
        short={1: IntTupleType, 2: LayoutType, -1: ComposedLayoutType},
    ),
    "get_shape": OpForm(
        ("layout, composed_layout, tile or memref",), "The sizes of a layout, or of the layouts of a tile.", _shape,
        plain=True,
    ),
    "get_stride": OpForm(
        LAYOUT, "The strides of a layout.", lambda k, _: StrideType(k[0].data.stride), plain=True,
        kinds=((LayoutType,),), short={0: LayoutType},
    ),
    "composed_get_inner": OpForm(
        ("composed_layout",), "The inner layout or swizzle.", lambda k, _: _inner(k[0].data), plain=True,
        kinds=((ComposedLayoutType,),), short={0: ComposedLayoutType},
    ),
    "composed_get_offset": OpForm(
        ("composed_layout",), "The offset between the two.", lambda k, _: IntTupleType(k[0].data.offset), plain=True,
        kinds=((ComposedLayoutType,),), short={0: ComposedLayoutType},
    ),
    "composed_get_outer": OpForm(
        ("composed_layout",), "The outer layout.", lambda k, _: LayoutType(k[0].data.outer), plain=True,
        kinds=((ComposedLayoutType,),), short={0: ComposedLayoutType, -1: LayoutType},
    ),
    "group_modes": OpForm(
        ("layout or composed_layout or memref",), "The modes from the first number up to the second as one mode.",
        lambda k, n: same(k[0], algebra.group_modes(outer(k[0]), *n)), RANGE,
    ),
    "recast_layout": OpForm(
        BOTH, "The layout for elements of the first number of bits, given that for elements of the second.",
        _recast, RANGE, plain=True, kinds=((LayoutType, ComposedLayoutType),),
    ),
    "flatten": OpForm(("layout, memref or tuple",), "The same without nesting.", _flatten),
    "filter": OpForm(
        LAYOUT, "The layout without what reaches no other element: strides of 0 and sizes of 1.",
        lambda k, _: LayoutType(algebra.filter_layout(k[0].data)),
    ),
    "filter_zeros": OpForm(
        ("layout or memref",), "The layout with sizes of 1 where the stride is 0; no mode goes.",
        lambda k, _: same(k[0], algebra.filter_zeros(outer(k[0]))),
    ),
    "make_ordered_layout": OpForm(
        ("shape", "int_tuple"), "A compact layout whose strides grow in the order of the second operand.",
        _ordered, kinds=((ShapeType,), (IntTupleType,)),
    ),
    "make_layout_like": OpForm(
        ("layout, composed_layout or memref",), "A compact layout of the same shape whose strides grow in the same "
        "order; those that are not known are the greatest.", _layout_like, plain=True,
    ),
    "make_identity_layout": OpForm(
        ("shape",), "The layout that gives each coordinate itself; its strides step along modes, as `1@0`.",
        lambda k, _: LayoutType(algebra.make_identity_layout(k[0].data)), plain=True, kinds=((ShapeType,),),
    ),
    "coalesce": OpForm(
        ("layout or memref", "int_tuple"), "The same function with as few modes as it takes, for each mode of the "
        "second operand, or in all.", _coalesce, optional=1,
    ),
    "composition": OpForm(
        ("layout or memref", "layout, tile or shape"), "c -> first(second(c)).", _composition
    ),
    "complement": OpForm(
        ("layout", "shape or int_tuple"), "What a layout leaves out, up to its own end or to a size.", _complement,
        optional=1,
    ),
    "right_inverse": OpForm(LAYOUT, "The layout R with L(R(i)) = i.", _unary(algebra.right_inverse)),
    "left_inverse": OpForm(LAYOUT, "The layout R with R(L(i)) = i.", _unary(algebra.left_inverse)),
    "dice": OpForm(
        ("layout, composed_layout or tuple", "coord"), "The modes for which a coordinate has a number.", _dice,
        infers=True, kinds=(None, (CoordType,)),
    ),
    "tile_to_shape": OpForm(
        ("layout or composed_layout", "shape", "int_tuple"), "Repeats a layout up to a shape, in the order of the "
        "third operand.", _tile_to_shape, optional=1,
    ),
    **{
        f"{how}_divide": OpForm(
            ("layout or memref", "layout, tile or shape"), does, _divided(getattr(algebra, f"{how}_divide"))
        )
        for how, does in DIVIDES.items()
    },
    **{
        f"{how}_product": OpForm(
            ("layout or composed_layout", "layout, tile or shape"), does,
            _known_left(getattr(algebra, f"{how}_product")),
        )
        for how, does in PRODUCTS.items()
    },
}  # fmt: skip
