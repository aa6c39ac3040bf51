"""The output of `print_tko`, as a GPU's is: the C library of the host formats each number."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolchain.errors import UsageError

from ...dialect.printf import MOST, Conversion, parse
from ..analysis.fields import Tile, is_tile, text, tile_of
from ..numbers.elements import Element
from .codegen import Emitter, lowering, where
from .integers import unsigned, wrap

_snprintf = ctypes.CDLL(None).snprintf
_LONGEST = MOST + 512  # of an f64: 309 digits, a dot and the precision


@lowering("print_tko", poison="own", pure=False)
def _print(emitter: Emitter, op: Any) -> None:
    tiles = [v for v in op.operands if is_tile(v)]
    kinds = [tile_of(v) for v in tiles]
    try:
        show = printer(text(op, "str"), kinds)
    except ValueError as error:  # of bytecode, which no one has verified
        raise UsageError(f"print_tko at {where(op)}: {error}") from error
    emitter.forbid_poison(tiles, "a printed value")
    emitter.line(f"{emitter.bind(show)}({emitter.refs(tiles)})")
    for result in op.results:
        emitter.name(result, "0")


def printer(template: str, tiles: Sequence[Tile]) -> Callable[..., None]:
    """Writes the template to standard output, with every element of each operand in its conversion's place: `[0, 1]`,
    `[[0, 1], [2, 3]]`. Raises ValueError for a template that is no format for these tiles."""
    parts = parse(template)
    conversions = sum(isinstance(part, Conversion) for part in parts)
    if conversions != len(tiles):
        raise ValueError(f"the text {template!r} has {conversions} conversions for {len(tiles)} values")
    left = iter(tiles)
    places = [(tile := next(left), formatter(p, tile.element)) if isinstance(p, Conversion) else p for p in parts]

    def show(*values: Any) -> None:
        todo = iter(values)
        for place in places:
            if isinstance(place, str):
                sys.stdout.write(place)
            else:
                tile, one = place
                value = next(todo)
                _write(np.broadcast_to(value, tile.shape) if tile.shape else value, one)

    return show


def _write(value: Any, one: Callable[[Any], str]) -> None:
    """Writes a scalar, or an array in brackets, piece by piece: a tile may have millions of elements."""
    if np.ndim(value) == 0:
        sys.stdout.write(one(value))
        return
    sys.stdout.write("[")
    for n, part in enumerate(value):
        if n:
            sys.stdout.write(", ")
        _write(part, one)
    sys.stdout.write("]")


def formatter(conversion: Conversion, element: Element) -> Callable[[Any], str]:
    """The text of one element. Integers of less than 32 bits arrive at a GPU's printf with their sign, i1 as 0 or 1,
    floats as f64. If the conversion does not fit its type, which Tile IR leaves undefined, the value is shown as is."""
    kind, floating = conversion.kind, element.kind == "float"
    if kind == "s" or floating != (kind in "aAeEfFgG"):
        return lambda x: str(x) if floating else str(int(x))
    if floating:
        return _formatter(conversion.spelled(""), ctypes.c_double, _double if element.bits < 64 else float)
    if kind == "p":
        return _formatter(conversion.spelled(""), ctypes.c_void_p, lambda x: unsigned(int(x), element))
    size = conversion.size if conversion.size in ("h", "hh") else ""
    if kind == "c" or size or element.bits < 64:
        return _formatter(conversion.spelled("" if kind == "c" else size), ctypes.c_int, lambda x: wrap(int(x), 32))
    return _formatter(conversion.spelled("ll"), ctypes.c_longlong, int)


def _double(x: Any) -> float:
    """A float made f64. A NaN has no sign then: it is the one that arithmetic makes."""
    return math.nan if x != x else float(x)


def _formatter(spelled: str, kind: Callable[[Any], Any], convert: Callable[[Any], Any]) -> Callable[[Any], str]:
    template = spelled.encode()

    def one(x: Any) -> str:
        buffer = ctypes.create_string_buffer(_LONGEST)
        length = _snprintf(buffer, _LONGEST, template, kind(convert(x)))
        return buffer.raw[:length].decode("latin-1")

    return one
