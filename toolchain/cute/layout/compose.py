"""Composition: what divides, products and partitions are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .layout import Layout, leaves, make_layout, refuse_sums
from .leaves import Basis, LayoutError, Path
from .steps import Modes, Reach, endless, refuse_carries, walk
from .tuples import like

Tile = tuple[Any, ...]  # a layout, a size or None (the whole mode) for each of the first modes


def composition(outer: Layout, inner: Layout | int | Tile) -> Layout:
    """The layout R with R(c) = outer(inner(c)), nested as `inner` is.

    A number n is the layout n:1. A stride of `inner` along a coordinate steps through the mode of `outer` that the
    coordinate names. An index beyond the size of `outer` goes on in its last mode, as in every evaluation. A tuple is a
    tile: its parts compose the first modes of `outer` one by one, and the others are dropped.

    Raises LayoutError if no layout is this function: a mode of `inner` must step evenly through the modes of `outer`,
    and its modes together must not carry from one of these into the next. A condition on a number that is not known is
    the caller's to keep.
    """
    if isinstance(inner, tuple):
        return make_layout(*list(by_mode(composition, outer, inner))[: len(inner)])
    if not isinstance(inner, Layout):
        inner = Layout(inner)
    try:
        return step_through(modes_along(outer, inner), inner)
    except LayoutError as error:
        raise LayoutError(f"{outer} o {inner} is no layout: {error}") from error


def step_through(along: Mapping[Path, Modes], inner: Layout) -> Layout:
    """The layout of what the strides of `inner` meet in the modes along each coordinate. Raises LayoutError."""
    met, reaches = list[Layout](), {path: list[Reach]() for path in along}
    for extent, stride in leaves(inner):
        path, step = (stride.path, stride.scale) if isinstance(stride, Basis) else ((), stride)
        if step == 0:
            met.append(Layout(extent, 0))
            continue
        made, reach = walk(along[path], extent, step)
        met.append(made)
        reaches[path].append(reach)
    for path, modes in along.items():
        refuse_carries(modes, reaches[path])
    return Layout(like((made.shape for made in met), inner.shape), like((made.stride for made in met), inner.stride))


def modes_along(outer: Layout, inner: Layout) -> dict[Path, Modes]:
    """The modes of `outer` that `inner` steps through, along each coordinate; an empty path is an index. Raises
    LayoutError if `inner` steps along a coordinate and along a part of it, or along one that `outer` has not."""
    paths = {stride.path if isinstance(stride, Basis) else () for _, stride in leaves(inner) if stride != 0}
    refuse_sums(paths, inner)
    return {path: endless(_mode_at(outer, path)) for path in paths}


def _mode_at(outer: Layout, path: Path) -> Layout:
    mode = outer
    for number in path:
        if not isinstance(mode.shape, tuple) or number >= len(mode):
            raise LayoutError("the first has no mode that the second steps along")
        mode = mode[number]
    return mode


def by_mode(function: Any, layout: Layout, tile: Tile) -> Layout:
    """A function of a layout and a tiler for each of the first modes; the other modes stay. Raises LayoutError if the
    tile has more parts than the layout modes."""
    modes = list(layout)
    if len(tile) > len(modes):
        raise LayoutError(f"a tile of {len(tile)} parts does not fit {layout}")
    made = [mode if part is None else function(mode, part) for mode, part in zip(modes, tile, strict=False)]
    return make_layout(*made, *modes[len(tile) :])
