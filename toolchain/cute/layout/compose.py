"""Composition and complement: what divides, products and partitions are made of."""

from __future__ import annotations

from typing import Any

from .layout import Layout, coalesce, cosize, filter_layout, from_leaves, leaves, make_layout
from .leaves import Basis, LayoutError, ceil_div, is_static, smaller
from .tuples import IntTuple, product

Tile = tuple[Any, ...]  # a layout, a size or None (the whole mode) for each of the first modes


def composition(outer: Layout, inner: Layout | int | Tile) -> Layout:
    """The layout R with R(c) = outer(inner(c)), nested as `inner` is.

    A number n is the layout n:1. A tuple is a tile: its parts compose the first modes of `outer` one by one, and the
    others stay. Raises LayoutError if no layout is this function: a mode of `inner` must step evenly through the modes
    of `outer`.
    """
    if isinstance(inner, tuple):
        return by_mode(composition, outer, inner)
    if not isinstance(inner, Layout):
        inner = Layout(inner)
    flat = leaves(coalesce(outer))
    shape, stride = _compose(flat, inner.shape, inner.stride, outer, inner)
    return Layout(shape, stride)


def by_mode(function: Any, layout: Layout, tile: Tile) -> Layout:
    """A function of a layout and a tiler for each of the first modes; the other modes stay. Raises LayoutError if the
    tile has more parts than the layout modes."""
    modes = list(layout)
    if len(tile) > len(modes):
        raise LayoutError(f"a tile of {len(tile)} parts does not fit {layout}")
    made = [mode if part is None else function(mode, part) for mode, part in zip(modes, tile, strict=False)]
    return make_layout(*made, *modes[len(tile) :])


def _compose(
    outer: list[tuple[Any, Any]], shape: IntTuple, stride: IntTuple, whole: Layout, inner: Layout
) -> tuple[IntTuple, IntTuple]:
    if isinstance(shape, tuple):
        parts = [_compose(outer, extent, step, whole, inner) for extent, step in zip(shape, stride, strict=True)]
        return tuple(part[0] for part in parts), tuple(part[1] for part in parts)
    if stride == 0 and not isinstance(stride, Basis):
        return shape, 0
    if len(outer) == 1:
        return shape, stride * outer[0][1]
    made = _walk(outer, shape, stride, whole, inner)
    return made.shape, made.stride


def _walk(outer: list[tuple[Any, Any]], left: Any, step: Any, whole: Layout, inner: Layout) -> Layout:
    """Composes with the mode left:step: takes from each mode of `outer` what the steps reach of it."""
    made: list[tuple[Any, Any]] = []
    for extent, stride in outer[:-1]:
        reached = ceil_div(extent, step)  # the steps that stay within this mode
        if left == 1 or reached == 1:
            if left != 1 and is_static(step, extent) and step % extent:
                raise _uneven(whole, inner, step, extent)
            step = ceil_div(step, extent)
            continue
        taken = smaller(left, reached)
        if is_static(left, taken) and left != taken and (left % taken or (is_static(step, extent) and extent % step)):
            raise _uneven(whole, inner, step, extent)
        made.append((taken, step * stride))
        left, step = left // taken, ceil_div(step, extent)
    if not made or left != 1:
        made.append((left, step * outer[-1][1]))
    return from_leaves(made)


def _uneven(outer: Layout, inner: Layout, step: Any, extent: Any) -> LayoutError:
    return LayoutError(f"{outer} o {inner} is no layout: steps of {step} do not fit a mode of {extent}")


def complement(layout: Layout, cotarget: IntTuple | Layout | None = None) -> Layout:
    """The layout that reaches the offsets which `layout` leaves out, up to a size or a layout's cosize.

    The two together reach each offset once. Without a cotarget it fills the holes only, and its last mode says where
    the layout ends. Raises LayoutError for strides along a coordinate, and for modes that overlap.
    """
    if any(isinstance(stride, Basis) for _, stride in leaves(layout)):
        raise LayoutError(f"{layout}: its offsets are coordinates, so it has no complement")
    used = [(extent, stride) for extent, stride in leaves(filter_layout(layout)) if extent != 1 and stride != 0]
    if len(used) > 1 and not is_static(*(stride for _, stride in used)):
        raise LayoutError(f"{layout} has more than one stride, and one is not known: no complement")
    holes: list[tuple[Any, Any]] = []
    end: Any = 1
    for extent, stride in sorted(used, key=lambda pair: pair[1]) if len(used) > 1 else used:
        if is_static(stride, end) and (stride < end or stride % end):
            raise LayoutError(f"{layout} has no complement: the mode {extent}:{stride} overlaps those before it")
        holes.append((stride // end, end))
        end = stride * extent
    if cotarget is None:
        return from_leaves([*(hole for hole in holes if hole[0] != 1), (1, end)])
    target = cosize(cotarget) if isinstance(cotarget, Layout) else cotarget
    if isinstance(target, tuple) and end == 1 and not holes:
        return coalesce(from_leaves(leaves(Layout(target))))
    rest = (ceil_div(product(target), end), end)
    return _without_ones([*holes, rest])


def _without_ones(pairs: list[tuple[Any, Any]]) -> Layout:
    """Coalesced; if all modes have size 1, the last is kept, whose stride is where the layout ends."""
    made = coalesce(from_leaves(pairs))
    return Layout(*pairs[-1]) if made.shape == 1 else made
