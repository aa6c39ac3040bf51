"""Arguments as they are given to a launch: arrays of any library, lists of arrays, and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any, cast

import numpy as np

from toolchain.errors import LaunchError

from .arrays import Array, is_array, view

Given = Array | tuple[Array, ...] | None  # an array, a list of arrays, or a number


def arrays_of(symbol: str, args: Sequence[Any], names: Sequence[str] = ()) -> list[Given]:
    """The arrays among arguments, in their places. Raises LaunchError."""
    found: list[Given] = []
    for at, arg in enumerate(args):
        name = f" ({names[at]})" if at < len(names) else ""
        what = f"{symbol}: argument {at}{name}"
        if is_array(arg):
            found.append(view(arg, what))
        elif isinstance(arg, bool | int | float | np.generic):
            found.append(None)
        elif isinstance(arg, list):
            found.append(_items(cast("list[Any]", arg), what))
        else:
            hint = "give its fields as a tuple" if is_dataclass(arg) else None
            raise LaunchError(f"{what} is a {type(arg).__name__}: neither an array nor a number", hint=hint)
    return found


def _items(args: list[Any], what: str) -> tuple[Array, ...]:
    """The arrays of a list, which have one dtype and one rank."""
    if not args or not all(map(is_array, args)):
        hint = "numpy.asarray makes an array of it" if args else None
        raise LaunchError(f"{what} is a list that is empty, or holds something other than arrays", hint=hint)
    found = tuple(view(arg, f"{what}, item {at}") for at, arg in enumerate(args))
    if len({(one.name, len(one.shape)) for one in found}) > 1:
        raise LaunchError(f"{what} is a list of arrays that differ: {', '.join(map(str, found))}")
    return found


def arrays(given: Iterable[Given]) -> Iterator[Array]:
    """The arrays of some arguments, those of lists too."""
    for one in given:
        if isinstance(one, Array):
            yield one
        elif one is not None:
            yield from one


def spread(arg: Any) -> Iterator[Any]:
    """What a tuple stands for: its items, one after the other, in turn; another argument is itself."""
    if type(arg) is tuple:
        for item in cast("tuple[Any, ...]", arg):
            yield from spread(item)
    else:
        yield arg
