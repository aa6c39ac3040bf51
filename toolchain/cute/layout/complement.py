"""The complement: what a layout leaves out of the offsets, or of the coordinates, that it could reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .layout import Layout, coalesce, filter_layout, from_leaves, leaves, make_layout, refuse_sums
from .leaves import Basis, LayoutError, Path, is_static
from .numbers import divide_up
from .tuples import IntTuple, compact, flatten, product, text

Modes = Sequence[tuple[Any, Any]]  # sizes and strides


def complement(
    layout: Layout, cotarget: IntTuple | Layout | None = None, *, padded: bool = False, apart: bool = False
) -> Layout:
    """The layout that reaches the offsets which `layout` leaves out, up to a size or a shape; of a layout, its shape.

    The two together reach each offset once. Of a shape each size is rounded up for itself, the first ones first:
    beyond 4:1, (6,8) has 2 and 8. Without a cotarget it fills the holes only, and its last mode says where the layout
    ends. Strides along coordinates have a complement along each coordinate, nested as the coordinates are.

    `padded`: a hole that is no multiple of what lies before it stays partly unused, as behind the columns of
    (4,6):(1,6): room for copies of a layout, each of them whole. `apart`: beyond the layout's end each mode of the
    cotarget is a mode, where sizes that are not known would be one.

    Raises LayoutError for negative strides, for modes that overlap, for a stride that is not known beside others, and
    where the rounded sizes leave out the last offsets.
    """
    used = [(extent, stride) for extent, stride in leaves(filter_layout(layout)) if extent != 1 and stride != 0]
    target = cotarget.shape if isinstance(cotarget, Layout) else cotarget
    if any(isinstance(stride, Basis) for _, stride in used):
        return _along_coordinates(layout, used, target)
    if len(used) > 1 and not is_static(*(stride for _, stride in used)):
        raise LayoutError(f"{layout} has more than one stride, and one is not known: no complement")
    holes, end = _holes(layout, used, padded)
    if target is None:
        return from_leaves([*(hole for hole in holes if hole[0] != 1), (1, end)])
    rest = divide_up(target, end)
    if is_static(*flatten((rest, target)), end) and product(rest) * end < product(target):
        raise LayoutError(
            f"{layout} has no complement up to {text(target)}: mode by mode it ends at {product(rest) * end}; "
            f"coalesced, {product(target)} is rounded up as a whole"
        )
    if apart or not used:
        return _without_ones([*holes, *zip(flatten(rest), flatten(compact(rest, end)), strict=True)])
    return _without_ones([*holes, (product(rest), end)])


def _holes(layout: Layout, used: Modes, padded: bool) -> tuple[list[tuple[Any, Any]], Any]:
    """The sizes and strides of the holes between the modes of a layout, and where it ends."""
    holes: list[tuple[Any, Any]] = []
    end: Any = 1
    for extent, stride in sorted(used, key=lambda pair: pair[1]) if len(used) > 1 else used:
        if is_static(stride) and stride < 0:
            raise LayoutError(f"{layout} has no complement: the mode {extent}:{stride} steps down")
        if is_static(stride, end) and (stride < end or (stride % end and not padded)):
            why = "overlaps those before it" if stride < end else f"leaves a hole of {stride - end} behind each {end}"
            raise LayoutError(f"{layout} has no complement: the mode {extent}:{stride} {why}")
        holes.append((stride // end, end))
        end = stride * extent
    return holes, end


def _without_ones(pairs: list[tuple[Any, Any]]) -> Layout:
    """Coalesced; if all modes have size 1, the last is kept, whose stride is where the layout ends."""
    made = coalesce(from_leaves(pairs))
    return Layout(*pairs[-1]) if made.shape == 1 else made


def _along_coordinates(layout: Layout, used: Modes, target: IntTuple | None) -> Layout:
    """A mode for each coordinate, up to the last that a stride names or the target has."""
    paths: dict[Path, list[tuple[Any, Any]]] = {}
    for extent, stride in used:
        if not isinstance(stride, Basis) or not is_static(extent, stride):
            raise LayoutError(f"{layout} has no complement: along coordinates all numbers must be known")
        paths.setdefault(stride.path, []).append((extent, stride.scale))
    refuse_sums(paths, layout)
    if target is None:
        return _part(layout, paths, None, ())
    shape = target if isinstance(target, tuple) else (target,)
    if (last := 1 + max(path[0] for path in paths)) > len(shape):
        raise LayoutError(f"{layout} steps along {last} coordinates, and {text(target)} has {len(shape)}")
    modes = [_part(layout, _below(paths, mode), extent, (mode,)) for mode, extent in enumerate(shape)]
    kept = [mode for mode in modes if mode.shape != 1] or modes[-1:]
    return kept[0] if len(kept) == 1 else make_layout(*kept)


def _below(paths: Mapping[Path, Any], mode: int) -> Mapping[Path, Any]:
    return {path[1:]: found for path, found in paths.items() if path[0] == mode}


def _part(layout: Layout, paths: Mapping[Path, Modes], target: IntTuple | None, at: Path) -> Layout:
    """The complement along one coordinate, or along the parts of one."""
    if not paths or () in paths:
        holes, end = _holes(layout, paths.get((), ()), padded=False)
        if target is None:
            return _stepping([*(hole for hole in holes if hole[0] != 1), (1, end)], at)
        whole = coalesce(from_leaves([*holes, (-(-product(target) // end), end)]))
        return _stepping(leaves(whole) if whole.shape != 1 else [(1, end)], at)
    modes = range(1 + max(path[0] for path in paths))
    parts = target if isinstance(target, tuple) else [None] * len(modes)
    return make_layout(*(_part(layout, _below(paths, mode), parts[mode], (*at, mode)) for mode in modes))


def _stepping(pairs: Modes, path: Path) -> Layout:
    return from_leaves([(extent, Basis(stride, path)) for extent, stride in pairs])
