"""Divides: a layout split by a tile, into the positions within a tile and the tiles.

The four differ in how they group the same modes. Tilers: a layout divides the whole layout; a number n is the layout
n:1; a tuple divides the first modes one by one, and None in it leaves a mode whole.
"""

from __future__ import annotations

from typing import Any

from .compose import Tile, by_mode, complement, composition
from .layout import Layout, make_layout
from .leaves import LayoutError


def logical_divide(layout: Layout, tiler: Layout | int | Tile) -> Layout:
    """`((tile, rest), ...)`: each mode with its tiles, or `(tile, rest)` if the tiler is one layout.

    Raises LayoutError if the tiler does not fit.
    """
    if isinstance(tiler, tuple):
        return by_mode(logical_divide, layout, tiler)
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
    return composition(layout, make_layout(tile, complement(tile, layout.shape)))


def zipped_divide(layout: Layout, tiler: Layout | int | Tile) -> Layout:
    """`((tile, ...), (rest, ...))`: all tile modes, then all others. Raises LayoutError."""
    divided = logical_divide(layout, tiler)
    if not isinstance(tiler, tuple):
        return divided
    return zip_pairs(divided, len(tiler))


def tiled_divide(layout: Layout, tiler: Layout | int | Tile) -> Layout:
    """`((tile, ...), rest, ...)`. Raises LayoutError."""
    within, across = zipped_divide(layout, tiler)
    return make_layout(within, *across)


def flat_divide(layout: Layout, tiler: Layout | int | Tile) -> Layout:
    """`(tile, ..., rest, ...)`. Raises LayoutError."""
    within, across = zipped_divide(layout, tiler)
    return make_layout(*within, *across)


def zip_pairs(layout: Layout, pairs: int) -> Layout:
    """`((a, b), (c, d), e)` with two pairs becomes `((a, c), (b, d, e))`. Raises LayoutError if one is no pair."""
    modes: list[Any] = list(layout)
    if odd := [mode for mode in modes[:pairs] if not isinstance(mode.shape, tuple) or len(mode) != 2]:
        raise LayoutError(f"{layout}: {odd[0]} was not divided in two")
    firsts = make_layout(*(mode[0] for mode in modes[:pairs]))
    return make_layout(firsts, make_layout(*(mode[1] for mode in modes[:pairs]), *modes[pairs:]))
