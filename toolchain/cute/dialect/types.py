"""The types of the `cute` dialect, in NVIDIA's text: `!cute.layout<"(4,8):(1,4)">`.

The older text without quotes, `!cute.layout<(4,8),(1,4)>`, is read too. Source: NVIDIA's CuTe IR, "CuTe algebra types".
"""

from __future__ import annotations

import re
from typing import Any

from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ..layout import Basis, ComposedLayout, Layout, LayoutError, Swizzle, tuple_add
from ..layout import tuples as nested
from .unquoted import literal


def parse_tile(text: str) -> Any:
    """The parts of a tile, `[(2,3):(1,2);_]`; a part may be a tile. One layout alone is a tile too, and so is `_`.
    Raises LayoutError."""
    text = text.strip()
    if text == "_":
        return None
    if text.startswith("[") and text.endswith("]"):
        return tuple(map(parse_tile, _parts(text[1:-1])))
    if ":" not in text and not text.isdigit():
        raise LayoutError(f"{text!r}: a tile is written [layout;layout;_]")
    return checked(Layout.parse(text))


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


def checked_steps(stride: Any) -> Any:
    """A stride, if all its leaves are numbers, or all are steps along coordinates that nest alike; 0 may be either.
    Raises LayoutError."""
    steps = [leaf for leaf in nested.flatten(stride) if not (isinstance(leaf, int) and leaf == 0)]
    paths = [leaf.path for leaf in steps if isinstance(leaf, Basis)]
    if 0 < len(paths) < len(steps):
        raise LayoutError(f"{nested.text(stride)}: strides are all numbers, or all steps along a coordinate")
    if any(a != b and a == b[: len(a)] for a in paths for b in paths):
        raise LayoutError(f"{nested.text(stride)} steps along a coordinate and along a part of it")
    return stride


def checked(layout: Layout) -> Layout:
    """A layout whose strides fit each other. Raises LayoutError."""
    checked_steps(layout.stride)
    return layout


def checked_composed(layout: ComposedLayout) -> ComposedLayout:
    """A composed layout whose parts fit each other. Raises LayoutError."""
    checked(layout.outer)
    steps = any(isinstance(leaf, Basis) for leaf in nested.flatten(layout.outer.stride))
    if isinstance(layout.inner, Swizzle):
        if steps or isinstance(layout.offset, tuple):
            raise LayoutError(f"{layout}: a swizzle mixes the bits of a number, and here it meets a coordinate")
        return layout
    checked(layout.inner)
    start = layout.outer(0)
    if isinstance(start, tuple) != isinstance(layout.offset, tuple) and 0 not in (start, layout.offset):
        raise LayoutError(f"{layout}: the outer layout's values and the offset are not of one kind")
    where = tuple_add(start, layout.offset)
    if not nested.weakly_congruent(where, layout.inner.shape):
        raise LayoutError(f"{layout}: {nested.text(where)} is no coordinate of {layout.inner}")
    return layout


def only(value: Any, *, basis: bool = False, open_modes: bool = False) -> Any:
    """A tuple without the leaves that its kind has not. Raises LayoutError."""
    for leaf in nested.flatten(value):
        if (isinstance(leaf, Basis) and not basis) or (leaf is None and not open_modes):
            what = "`_` stands in a coordinate" if leaf is None else "a step along a coordinate stands in a stride"
            raise LayoutError(f"{nested.text(value)}: {what} alone")
    return value


class CuteData(Data[Any]):
    """A value of the layout algebra, written in quotes: of a type, or of an attribute."""

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


class CuteType(CuteData, TypeAttribute):
    """A type whose parameter is a value of the layout algebra."""


@irdl_attr_definition
class IntTupleType(CuteType):
    """A nested tuple of integers."""

    name = "cute.int_tuple"

    @staticmethod
    def read(text: str) -> Any:
        return only(nested.parse(text))


@irdl_attr_definition
class ShapeType(CuteType):
    """The sizes of a layout."""

    name = "cute.shape"

    @staticmethod
    def read(text: str) -> Any:
        return only(nested.parse(text))


@irdl_attr_definition
class StrideType(CuteType):
    """The strides of a layout."""

    name = "cute.stride"

    @staticmethod
    def read(text: str) -> Any:
        return checked_steps(only(nested.parse(text), basis=True))


@irdl_attr_definition
class CoordType(CuteType):
    """A coordinate; `_` stands for a whole mode."""

    name = "cute.coord"

    @staticmethod
    def read(text: str) -> Any:
        return only(nested.parse(text), open_modes=True)


@irdl_attr_definition
class LayoutType(CuteType):
    """A shape and strides."""

    name = "cute.layout"

    @staticmethod
    def read(text: str) -> Layout:
        return checked(Layout.parse(text))

    @staticmethod
    def write(value: Layout) -> str:
        return str(value)


@irdl_attr_definition
class ComposedLayoutType(CuteType):
    """`inner o offset o outer`."""

    name = "cute.composed_layout"

    @staticmethod
    def read(text: str) -> ComposedLayout:
        return checked_composed(ComposedLayout.parse(text))

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


def _attribute(kind: type[CuteType]) -> type[Attribute]:
    """`#cute.layout<"4:1">`: the value of a type as an attribute."""
    texts = {"read": staticmethod(kind.read), "write": staticmethod(kind.write)}
    label = kind.__name__.replace("Type", "Attr")
    made: Any = type(label, (CuteData,), {"name": kind.name, "__doc__": kind.__doc__, **texts})
    return irdl_attr_definition(made)


ATTRIBUTES: list[type[Attribute]] = [_attribute(kind) for kind in TYPES]


def is_static(kind: CuteType) -> bool:
    """True if all numbers of a type are known."""
    return "?" not in kind.write(kind.data)


def plain(kind: CuteType) -> str:
    """A type's text without divisibilities and widths: two types that agree in it are compatible."""
    return f"{kind.name}<{re.sub(r'[?][{][^}]*[}]', '?', kind.write(kind.data))}>"
