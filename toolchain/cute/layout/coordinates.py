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
    return Layout(picked(layout.shape, coordinate, is_open=True), picked(layout.stride, coordinate, is_open=True))


def dice(layout: Layout, coordinate: IntTuple) -> Layout:
    """The modes for which the coordinate has a number. Raises LayoutError if it does not fit."""
    return Layout(picked(layout.shape, coordinate, is_open=False), picked(layout.stride, coordinate, is_open=False))


def slice_and_offset(layout: Layout, coordinate: IntTuple) -> tuple[Layout, Any]:
    """The modes that a coordinate leaves open, and the offset of its numbers."""
    closed = tuples.transform(zero_if_open, coordinate)
    return slice_layout(layout, coordinate), crd2idx(closed, layout)


def zero_if_open(leaf: Any) -> Any:
    """A number of a coordinate, or 0 for a mode that is open."""
    return 0 if leaf is None else leaf


def picked(value: IntTuple, coordinate: IntTuple, *, is_open: bool) -> IntTuple:
    """The parts of a tuple for which a coordinate has None, or those for which it has a number. Raises LayoutError.

    What is kept of nested parts stands side by side: of ((2,4),3), the coordinate ((_,0),_) leaves (2,3).
    """
    if not isinstance(coordinate, tuple):
        return value if (coordinate is None) == is_open else ()
    if not isinstance(value, tuple) or len(value) != len(coordinate):
        raise LayoutError(f"the coordinate {tuples.text(coordinate)} does not fit {tuples.text(value)}")
    made = list[Any]()
    for part, where in zip(value, coordinate, strict=True):
        if isinstance(where, tuple):
            made += picked(part, where, is_open=is_open)
        elif (where is None) == is_open:
            made.append(part)
    return tuple(made)
