"""Composition and complement: what divides, products and partitions are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .layout import Layout, coalesce, filter_layout, from_leaves, leaves, make_layout, refuse_sums
from .leaves import Basis, LayoutError, Path, is_static
from .numbers import divide_up
from .steps import Modes, Reach, endless, refuse_carries, walk
from .tuples import IntTuple, compact, flatten, like, product, text

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


def complement(layout: Layout, cotarget: IntTuple | Layout | None = None) -> Layout:
    """The layout that reaches the offsets which `layout` leaves out, up to a size or a shape; of a layout, its shape.

    The two together reach each offset once. Of a shape each size is rounded up for itself, the first ones first:
    beyond 4:1, (6,8) has 2 and 8. Without a cotarget it fills the holes only, and its last mode says where the layout
    ends. Raises LayoutError for strides along a coordinate, negative ones, for modes that overlap, and where the
    rounded sizes leave out the last offsets.
    """
    if any(isinstance(stride, Basis) for _, stride in leaves(layout)):
        raise LayoutError(f"{layout}: its offsets are coordinates, so it has no complement")
    used = [(extent, stride) for extent, stride in leaves(filter_layout(layout)) if extent != 1 and stride != 0]
    if len(used) > 1 and not is_static(*(stride for _, stride in used)):
        raise LayoutError(f"{layout} has more than one stride, and one is not known: no complement")
    holes: list[tuple[Any, Any]] = []
    end: Any = 1
    for extent, stride in sorted(used, key=lambda pair: pair[1]) if len(used) > 1 else used:
        if is_static(stride) and stride < 0:
            raise LayoutError(f"{layout} has no complement: the mode {extent}:{stride} steps down")
        if is_static(stride, end) and (stride < end or stride % end):
            raise LayoutError(f"{layout} has no complement: the mode {extent}:{stride} overlaps those before it")
        holes.append((stride // end, end))
        end = stride * extent
    if cotarget is None:
        return from_leaves([*(hole for hole in holes if hole[0] != 1), (1, end)])
    target = cotarget.shape if isinstance(cotarget, Layout) else cotarget
    rest = divide_up(target, end)
    if is_static(*flatten((rest, target)), end) and product(rest) * end < product(target):
        raise LayoutError(
            f"{layout} has no complement up to {text(target)}: mode by mode it ends at {product(rest) * end}; "
            f"coalesced, {product(target)} is rounded up as a whole"
        )
    return _without_ones([*holes, *zip(flatten(rest), flatten(compact(rest, end)), strict=True)])


def _without_ones(pairs: list[tuple[Any, Any]]) -> Layout:
    """Coalesced; if all modes have size 1, the last is kept, whose stride is where the layout ends."""
    made = coalesce(from_leaves(pairs))
    return Layout(*pairs[-1]) if made.shape == 1 else made
