"""Divides: a layout split by a tile, into the positions within a tile and the tiles.

The four differ in how they group the same modes. Tilers: a layout divides the whole layout; a number n is the layout
n:1; a tuple divides the first modes one by one, and None in it leaves a mode whole.
"""

from __future__ import annotations

from typing import Any

from .complement import complement
from .compose import Tile, by_mode, composition
from .layout import Layout, make_layout
from .leaves import LayoutError
from .numbers import divide_up
from .tuples import IntTuple, product, text


def logical_divide(layout: Layout, tiler: Layout | int | Tile) -> Layout:
    """`((tile, rest), ...)`: each mode with its tiles, or `(tile, rest)` if the tiler is one layout.

    Raises LayoutError if the tiler does not fit.
    """
    if isinstance(tiler, tuple):
        return by_mode(logical_divide, layout, tiler)
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
    return composition(layout, make_layout(tile, complement(tile, layout.shape, apart=True)))


def zipped_divide(layout: Layout, tiler: Layout | int | Tile) -> Layout:
    """`((tile, ...), (rest, ...))`: all tile modes, then all others; so too within a mode that a tuple divides. A mode
    that the tiler leaves whole must be a pair. Raises LayoutError."""
    if not isinstance(tiler, tuple):
        return logical_divide(layout, tiler)
    return zip_pairs(by_mode(zipped_divide, layout, tiler), len(tiler))


def tiled_divide(layout: Layout, tiler: Layout | int | Tile) -> Layout:
    """`((tile, ...), rest, ...)`. Raises LayoutError."""
    within, across = zipped_divide(layout, tiler)
    return make_layout(within, *across)


def flat_divide(layout: Layout, tiler: Layout | int | Tile) -> Layout:
    """`(tile, ..., rest, ...)`. Raises LayoutError."""
    within, across = zipped_divide(layout, tiler)
    return make_layout(*within, *across)


def divide_up_by_tile(shape: IntTuple, tile: Layout | Tile | None) -> IntTuple:
    """How many tiles cover a shape; a layout covers the size of its mode as a whole. Raises LayoutError if the tile
    has more parts than the shape has modes, or leaves a mode whole."""
    if isinstance(tile, tuple):
        if not isinstance(shape, tuple):
            return divide_up(shape, product(tuple(part.shape for part in tile)))
        if len(tile) > len(shape):
            raise LayoutError(f"{text(shape)} has fewer modes than a tile of {len(tile)} parts")
        divided = (divide_up_by_tile(extent, part) for extent, part in zip(shape, tile, strict=False))
        return (*divided, *shape[len(tile) :])
    if tile is None:
        raise LayoutError("a mode that a tile leaves whole has no number of tiles")
    return complement(tile, product(shape)).shape


def zip_pairs(layout: Layout, pairs: int) -> Layout:
    """`((a, b), (c, d), e)` with two pairs becomes `((a, c), (b, d, e))`. Raises LayoutError if one is no pair."""
    modes: list[Any] = list(layout)
    if odd := [mode for mode in modes[:pairs] if not isinstance(mode.shape, tuple) or len(mode) != 2]:
        raise LayoutError(f"{layout}: {odd[0]} is not divided in two, so it is no pair to take apart")
    firsts = make_layout(*(mode[0] for mode in modes[:pairs]))
    return make_layout(firsts, make_layout(*(mode[1] for mode in modes[:pairs]), *modes[pairs:]))
