"""Inverses of layouts: from an offset back to the index."""

from __future__ import annotations

from typing import Any

from .layout import Layout, coalesce, from_leaves, leaves
from .leaves import Basis, LayoutError, is_static


def _sorted_modes(layout: Layout) -> list[tuple[Any, Any, Any]]:
    """Size, stride and index step of each mode that moves, by stride."""
    pairs = leaves(coalesce(layout))
    if any(isinstance(stride, Basis) or not is_static(extent, stride) for extent, stride in pairs):
        raise LayoutError(f"{layout}: only a layout of known integers has an inverse")
    made: list[tuple[Any, Any, Any]] = []
    step = 1
    for extent, stride in pairs:
        if extent != 1 and stride != 0:
            made.append((extent, stride, step))
        step *= extent
    return sorted(made, key=lambda mode: mode[1])


def right_inverse(layout: Layout) -> Layout:
    """The longest layout R with layout(R(j)) = j. It is 1:0 if the layout does not reach offset 1.

    Raises LayoutError for numbers that are not known, and for strides along a coordinate.
    """
    made: list[tuple[Any, Any]] = []
    end = 1
    for extent, stride, step in _sorted_modes(layout):
        if stride == end:
            made.append((extent, step))
            end *= extent
    return coalesce(from_leaves(made)) if made else Layout(1, 0)


def left_inverse(layout: Layout) -> Layout:
    """A layout L with L(layout(i)) = i, for a layout that maps no two indices alike.

    Raises LayoutError for numbers that are not known, for strides along a coordinate, and if a stride does not divide
    the next.
    """
    modes = _sorted_modes(layout)
    if not modes:
        return Layout(1, 0)
    made: list[tuple[Any, Any]] = [(modes[0][1], 0)] if modes[0][1] != 1 else []
    for (extent, stride, step), after in zip(modes, [*modes[1:], None], strict=True):
        if after is not None and after[1] % stride:
            raise LayoutError(f"{layout} has no left inverse: stride {stride} does not divide stride {after[1]}")
        made.append((extent if after is None else after[1] // stride, step))
    return coalesce(from_leaves(made))
