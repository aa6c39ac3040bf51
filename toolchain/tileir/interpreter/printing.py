"""The output of `print_tko`: C's printf for tiles."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolchain.errors import UsageError

from .codegen import Emitter, lowering, where
from .elements import Element
from .fields import Tile, is_tile, text, tile_of
from .integers import unsigned

_CONVERSION = re.compile(r"%(?:%|(?P<flags>[-+ #0]*\d*(?:\.\d*)?)(?:hh|ll|[hlzjtqL])?(?P<kind>[diouxXcpsaAeEfFgG]))")


@lowering("print_tko", poison="own", pure=False)
def _print(emitter: Emitter, op: Any) -> None:
    tiles = [v for v in op.operands if is_tile(v)]
    template, kinds = text(op, "str"), [tile_of(v) for v in tiles]
    conversions = sum(match["kind"] is not None for match in _CONVERSION.finditer(template))
    if "%" in _CONVERSION.sub("", template) or conversions != len(kinds):
        raise UsageError(f"print_tko at {where(op)}: the format {template!r} does not fit {len(kinds)} values")
    emitter.forbid_poison(tiles, "a printed value")
    emitter.line(f"{emitter.bind(printer(template, kinds))}({emitter.refs(tiles)})")
    for result in op.results:
        emitter.name(result, "0")


def printer(template: str, tiles: Sequence[Tile]) -> Callable[..., None]:
    """Writes the template to standard output, with every element of each operand in its conversion's place."""

    def show(*values: Any) -> None:
        todo = iter(zip(tiles, values, strict=True))

        def one(match: re.Match[str]) -> str:
            if match["kind"] is None:
                return "%"
            tile, value = next(todo)

            def element(x: Any) -> str:
                return formatted(match["flags"], match["kind"], tile.element, x)

            if tile.shape == ():
                return element(value)
            whole = np.broadcast_to(value, tile.shape)
            return np.array2string(whole, threshold=sys.maxsize, formatter={"all": element})

        sys.stdout.write(_CONVERSION.sub(one, template))

    return show


def formatted(flags: str, kind: str, element: Element, x: Any) -> str:
    """One element. If the conversion does not fit its type, which Tile IR leaves undefined, it is shown as is."""
    if (element.kind == "float") != (kind in "aAeEfFgG"):
        return str(x)
    if kind in "aA":
        return float(x).hex()
    if element.kind == "float":
        return f"%{flags}{kind}" % float(x)
    number = int(x)
    bits = unsigned(number, element)
    if kind == "c":
        return chr(bits & 0xFF)
    if kind == "p":
        return hex(bits)
    if kind in "diu":
        return f"%{flags}d" % (bits if kind == "u" else number)
    return (f"%{flags}{kind}" % bits).replace("0o", "0")  # Python's prefix of octal numbers
