"""Coordinates: from a coordinate to an offset and back, and the part of a layout that a coordinate leaves open."""

from __future__ import annotations

from typing import Any

from . import tuples
from .layout import Layout
from .leaves import LayoutError, quotient, remainder
from .tuples import IntTuple, product


def crd2idx(coordinate: IntTuple, layout: Layout) -> Any:
    """The offset of a coordinate: `layout(coordinate)`. Raises LayoutError if it does not fit."""
    return layout(coordinate)


def idx2crd(index: Any, shape: IntTuple) -> IntTuple:
    """The coordinate of an index in a shape, column-major, nested as the shape is. An index tuple is taken by mode.

    An index beyond the shape goes on in the last mode, as where a layout is evaluated.
    """
    if isinstance(index, tuple):
        if not isinstance(shape, tuple) or len(index) != len(shape):
            raise LayoutError(f"the index {tuples.text(index)} does not fit the shape {tuples.text(shape)}")
        return tuple(idx2crd(part, extent) for part, extent in zip(index, shape, strict=True))
    if not isinstance(shape, tuple):
        return index
    if not shape:
        return ()
    made, before = list[Any](), 1
    for extent in shape[:-1]:
        inside = product(extent)
        made.append(idx2crd(remainder(quotient(index, before), inside), extent))
        before = before * inside
    return (*made, idx2crd(quotient(index, before), shape[-1]))


def slice_layout(layout: Layout, coordinate: IntTuple) -> Layout:
    """The modes for which the coordinate has None. Raises LayoutError if it does not fit."""
    return _pick(layout, coordinate, keep_open=True)


def dice(layout: Layout, coordinate: IntTuple) -> Layout:
    """The modes for which the coordinate has a number. Raises LayoutError if it does not fit."""
    return _pick(layout, coordinate, keep_open=False)


def slice_and_offset(layout: Layout, coordinate: IntTuple) -> tuple[Layout, Any]:
    """The modes that a coordinate leaves open, and the offset of its numbers."""
    closed = tuples.transform(_zero_if_open, coordinate)
    return slice_layout(layout, coordinate), crd2idx(closed, layout)


def _zero_if_open(leaf: Any) -> Any:
    return 0 if leaf is None else leaf


def _pick(layout: Layout, coordinate: IntTuple, *, keep_open: bool) -> Layout:
    if not isinstance(coordinate, tuple):
        return layout if (coordinate is None) == keep_open else Layout((), ())
    shape, stride = _picked(layout.shape, layout.stride, coordinate, keep_open, layout)
    return Layout(shape, stride)


def _picked(shape: Any, stride: Any, coordinate: Any, keep_open: bool, layout: Layout) -> tuple[Any, Any]:
    """What is kept of nested modes stands side by side: of ((2,4),3), the coordinate ((_,0),_) leaves (2,3)."""
    if not isinstance(shape, tuple) or len(shape) != len(coordinate):
        raise LayoutError(f"the coordinate {tuples.text(coordinate)} does not fit {layout}")
    shapes, strides = list[Any](), list[Any]()
    for extent, step, part in zip(shape, stride, coordinate, strict=True):
        if isinstance(part, tuple):
            inner, inner_strides = _picked(extent, step, part, keep_open, layout)
            shapes += inner
            strides += inner_strides
        elif (part is None) == keep_open:
            shapes.append(extent)
            strides.append(step)
    return tuple(shapes), tuple(strides)
