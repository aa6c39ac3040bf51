"""The types of the `cute` dialect, in NVIDIA's text: `!cute.layout<"(4,8):(1,4)">`.

The older text without quotes, `!cute.layout<(4,8),(1,4)>`, is read too. Source: NVIDIA's CuTe IR, "CuTe algebra types".
"""

from __future__ import annotations

import re
from typing import Any

from xdsl.ir import Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ..layout import ComposedLayout, Layout, LayoutError, Swizzle
from ..layout import tuples as nested
from .unquoted import literal


def parse_tile(text: str) -> Any:
    """The parts of a tile, `[(2,3):(1,2);_]`; a part may be a tile. Raises LayoutError."""
    text = text.strip()
    if text == "_":
        return None
    if not (text.startswith("[") and text.endswith("]")):
        raise LayoutError(f"{text!r}: a tile is written [layout;layout;_]")
    return tuple(parse_tile(part) if part.strip()[:1] in "[_" else Layout.parse(part) for part in _parts(text[1:-1]))


def _parts(text: str) -> list[str]:
    """Splits at the semicolons that stand in no inner brackets."""
    depth, parts = 0, [""]
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == ";" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def tile_text(tile: Any) -> str:
    """A tile as it is written."""
    if isinstance(tile, tuple):
        return "[" + ";".join(map(tile_text, tile)) + "]"
    return "_" if tile is None else str(tile)


class CuteType(Data[Any], TypeAttribute):
    """A type whose parameter is a value of the layout algebra, written in quotes."""

    @staticmethod
    def read(text: str) -> Any:
        return nested.parse(text)

    @staticmethod
    def write(value: Any) -> str:
        return nested.text(value)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        with parser.in_angle_brackets():
            place = parser.pos
            text = literal(parser)
            try:
                return cls.read(text)
            except LayoutError as error:
                parser.raise_error(str(error), place, parser.pos)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f'<"{self.write(self.data)}">')


@irdl_attr_definition
class IntTupleType(CuteType):
    """A nested tuple of integers."""

    name = "cute.int_tuple"


@irdl_attr_definition
class ShapeType(CuteType):
    """The sizes of a layout."""

    name = "cute.shape"


@irdl_attr_definition
class StrideType(CuteType):
    """The strides of a layout."""

    name = "cute.stride"


@irdl_attr_definition
class CoordType(CuteType):
    """A coordinate; `_` stands for a whole mode."""

    name = "cute.coord"


@irdl_attr_definition
class LayoutType(CuteType):
    """A shape and strides."""

    name = "cute.layout"

    @staticmethod
    def read(text: str) -> Layout:
        return Layout.parse(text)

    @staticmethod
    def write(value: Layout) -> str:
        return str(value)


@irdl_attr_definition
class ComposedLayoutType(CuteType):
    """`inner o offset o outer`."""

    name = "cute.composed_layout"

    @staticmethod
    def read(text: str) -> ComposedLayout:
        return ComposedLayout.parse(text)

    @staticmethod
    def write(value: ComposedLayout) -> str:
        return str(value)


@irdl_attr_definition
class SwizzleType(CuteType):
    """A permutation of an offset's bits."""

    name = "cute.swizzle"

    @staticmethod
    def read(text: str) -> Swizzle:
        return Swizzle.parse(text)

    @staticmethod
    def write(value: Swizzle) -> str:
        return str(value)


@irdl_attr_definition
class TileType(CuteType):
    """A layout or `_` for each mode."""

    name = "cute.tile"

    @staticmethod
    def read(text: str) -> Any:
        return parse_tile(text)

    @staticmethod
    def write(value: Any) -> str:
        return tile_text(value)


TYPES: list[type[CuteType]] = [
    IntTupleType, ShapeType, StrideType, CoordType, LayoutType, ComposedLayoutType, SwizzleType, TileType,
]  # fmt: skip


def is_static(kind: CuteType) -> bool:
    """True if all numbers of a type are known."""
    return "?" not in kind.write(kind.data)


def plain(kind: CuteType) -> str:
    """A type's text without divisibilities and widths: two types that agree in it are compatible."""
    return f"{kind.name}<{re.sub(r'[?][{][^}]*[}]', '?', kind.write(kind.data))}>"
