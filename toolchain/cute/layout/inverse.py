"""Inverses of layouts: from an offset back to the index, or from a coordinate if strides step along one.

With strides along coordinates an inverse has a mode for each coordinate: that of the layout's modes that step along it.
Source: NVIDIA's CuTe IR, "Inverses", and the results of its tests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .layout import Layout, coalesce, from_leaves, leaves, make_layout
from .leaves import Basis, LayoutError, Path, is_static

Mode = tuple[Any, Any, Any]  # size, stride, and the step of the index


def right_inverse(layout: Layout) -> Layout:
    """The longest layout R with layout(R(j)) = j. It is 1:0 if the layout does not reach offset 1.

    Strides that are not known are left out. Raises LayoutError if such a stride, or one along a coordinate, comes with
    a size that is not known, and for a layout of offsets and coordinates at once.
    """
    sizes, strides = zip(*leaves(layout), strict=True) if leaves(layout) else ((), ())
    if not is_static(*sizes) and (not is_static(*strides) or any(isinstance(stride, Basis) for stride in strides)):
        raise LayoutError(f"{layout}: with a size that is not known, an inverse needs strides that are known integers")
    return _by_coordinate(layout, _right)


def left_inverse(layout: Layout) -> Layout:
    """A layout L with L(layout(i)) = i, for a layout that maps no two indices alike: that is not checked.

    Raises LayoutError for numbers that are not known, for negative strides, for a layout of offsets and coordinates at
    once, and if a stride does not divide the next.
    """
    if not all(is_static(*pair) for pair in leaves(layout)):
        raise LayoutError(f"{layout}: only a layout of known numbers has a left inverse")
    return _by_coordinate(layout, partial(_left, layout))


def _right(modes: list[Mode]) -> Layout:
    made: list[tuple[Any, Any]] = []
    end: Any = 1
    for extent, stride, step in modes:
        if is_static(end) and stride == end:
            made.append((extent, step))
            end = end * extent
    return coalesce(from_leaves(made)) if made else Layout(1, 0)


def _left(layout: Layout, modes: list[Mode]) -> Layout:
    if not modes:
        return Layout(1, 0)
    if modes[0][1] < 0:
        raise LayoutError(f"{layout} has no left inverse: a mode steps down, by {modes[0][1]}")
    made: list[tuple[Any, Any]] = [(modes[0][1], 0)] if modes[0][1] != 1 else []
    for (extent, stride, step), after in zip(modes, [*modes[1:], None], strict=True):
        if after is not None and after[1] % stride:
            raise LayoutError(f"{layout} has no left inverse: stride {stride} does not divide stride {after[1]}")
        made.append((extent if after is None else after[1] // stride, step))
    return coalesce(from_leaves(made))


def _by_coordinate(layout: Layout, inverse: Callable[[list[Mode]], Layout]) -> Layout:
    """The inverse of the modes along each coordinate, nested as the coordinates are."""
    found: dict[Path, list[Mode]] = {s.path: [] for _, s in leaves(layout) if isinstance(s, Basis)}
    step: Any = 1
    for extent, stride in leaves(coalesce(layout)):
        path, scale = (stride.path, stride.scale) if isinstance(stride, Basis) else ((), stride)
        if extent != 1 and is_static(scale) and scale != 0:
            found.setdefault(path, []).append((extent, scale, step))
        step = step * extent
    made = {path: inverse(sorted(modes, key=lambda mode: mode[1])) for path, modes in found.items()}
    return _nested(made, layout) if made else inverse([])


def _nested(made: dict[Path, Layout], layout: Layout) -> Layout:
    if () in made:
        if len(made) > 1:
            raise LayoutError(f"{layout} adds a number and a coordinate, so it has no inverse")
        return made[()]
    if not made:
        return Layout(1, 0)
    modes = range(1 + max(path[0] for path in made))
    return make_layout(*(
        _nested({path[1:]: part for path, part in made.items() if path[0] == mode}, layout) for mode in modes
    ))  # fmt: skip
