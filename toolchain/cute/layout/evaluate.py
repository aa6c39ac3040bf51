"""The offset of a coordinate under a shape and strides."""

from __future__ import annotations

from typing import Any

from . import tuples
from .leaves import Basis, LayoutError, quotient, remainder
from .tuples import IntTuple, product


def offset(coordinate: IntTuple, shape: IntTuple, stride: IntTuple) -> Any:
    """The sum of coordinate times stride over all leaves. An integer for a nested mode is an index into it,
    column-major. The result is a coordinate if strides step along one.

    Raises LayoutError if the coordinate has more modes than the shape, or fewer.
    """
    return _settle(_offset(coordinate, shape, stride))


def offsets(shape: IntTuple, stride: IntTuple) -> list[Any]:
    """The offset of each index, in order."""
    made: list[Any] = [0]
    for extent, step in zip(tuples.flatten(shape), tuples.flatten(stride), strict=True):
        steps = [_scaled(i, step) for i in range(extent)]
        made = [_add(before, step) for step in steps for before in made]
    return [_settle(total) for total in made]


def _offset(coordinate: IntTuple, shape: IntTuple, stride: IntTuple) -> Any:
    if isinstance(coordinate, tuple):
        if not isinstance(shape, tuple) or len(coordinate) != len(shape):
            raise LayoutError(f"the coordinate {tuples.text(coordinate)} does not fit the shape {tuples.text(shape)}")
        total: Any = 0
        for part, extent, step in zip(coordinate, shape, stride, strict=True):
            total = _add(total, _offset(part, extent, step))
        return total
    if not isinstance(shape, tuple):
        return _scaled(coordinate, stride)
    total = 0
    for number, (extent, step) in enumerate(zip(shape, stride, strict=True)):
        last = number == len(shape) - 1  # the last mode takes what is left, so that an index may lie outside
        inside = product(extent)
        total = _add(total, _offset(coordinate if last else remainder(coordinate, inside), extent, step))
        coordinate = coordinate if last else quotient(coordinate, inside)
    return total


def _scaled(index: Any, stride: Any) -> Any:
    return {stride.path: index * stride.scale} if isinstance(stride, Basis) else index * stride


def _add(a: Any, b: Any) -> Any:
    """Adds offsets. Steps along a coordinate are kept by mode until all are known."""
    if isinstance(a, dict) or isinstance(b, dict):
        by_mode: dict[Any, Any] = {}
        for part in (a, b):
            for path, value in (part if isinstance(part, dict) else {(): part}).items():
                by_mode[path] = by_mode.get(path, 0) + value
        return by_mode
    return a + b


def _settle(offset: Any) -> Any:
    """A coordinate as a tuple, from the steps along each of its modes."""
    if not isinstance(offset, dict):
        return offset
    steps = {path: value for path, value in offset.items() if path or value != 0}
    if () in steps:
        raise LayoutError("this layout adds an offset and a coordinate")
    return _coordinate(steps)


def _coordinate(steps: dict[tuple[int, ...], Any]) -> Any:
    if () in steps:
        return steps[()]
    if not steps:
        return 0
    modes = 1 + max(path[0] for path in steps)
    return tuple(
        _coordinate({path[1:]: value for path, value in steps.items() if path[0] == mode}) for mode in range(modes)
    )
