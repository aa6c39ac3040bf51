"""Values of `cute` with the numbers of a kernel in the place of those that are not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dialect.types import CuteType
from ..layout import Basis, ComposedLayout, Dynamic, Layout


def with_numbers(kind: CuteType, numbers: Iterator[Any]) -> CuteType:
    """A type's value whose unknown numbers are the next ones, in the order of its text."""
    return type(kind)(_filled(kind.data, numbers))


def _filled(value: Any, numbers: Iterator[Any]) -> Any:
    match value:
        case Dynamic():
            return next(numbers)
        case Basis():
            return Basis(_filled(value.scale, numbers), value.path)
        case Layout():
            shape = _filled(value.shape, numbers)
            return Layout(shape, _filled(value.stride, numbers))
        case ComposedLayout():
            inner, offset = _filled(value.inner, numbers), _filled(value.offset, numbers)
            return ComposedLayout(inner, offset, _filled(value.outer, numbers))
        case tuple():
            parts: tuple[Any, ...] = value
            return tuple(_filled(part, numbers) for part in parts)
        case _:
            return value
