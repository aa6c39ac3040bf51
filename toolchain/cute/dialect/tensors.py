"""The types of tensors: a pointer and a layout, coordinates and a layout, and the tiled atoms that divide them.

`!cute.memref<bf16, smem, align<128>, S<3,4,3>, "(128,64):(64,1)">`: dtype, memory, bytes of alignment, the swizzle of
byte offsets if there is one, and the layout in elements. `!cute.ptr` has the same parts without a layout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...errors import UsageError
from ..atoms.copy_atom import CopyAtom
from ..atoms.mma import find
from ..atoms.tiled import TiledCopy, TiledMma
from ..layout import Layout, LayoutError, Swizzle, tuple_add
from ..layout import tuples as nested
from ..layout.leaves import divisor, split
from .types import CuteType, parse_tile
from .unquoted import literal, tuple_literal

SPACES = {"gmem": 1, "smem": 3, "rmem": 0}  # the address spaces of `!llvm.ptr`; registers are a stack's slots
DTYPES: dict[str, Attribute] = {"f64": f64, "f32": f32, "tf32": f32, "f16": f16, "bf16": bf16, "e4m3": i8, "e5m2": i8,
                                "s8": i8, "u8": i8, "i1": i1, "i8": i8, "i16": i16, "i32": i32, "i64": i64}  # fmt: skip
BITS = {"f64": 64, "f32": 32, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "i1": 8,
        "i8": 8, "i16": 16, "i32": 32, "i64": 64}  # in memory  # fmt: skip


@dataclass(frozen=True)
class Pointer:
    """Elements in memory. `align`: bytes. `swizzle`: of byte offsets from the start, which is aligned to its span."""

    dtype: str
    space: str
    align: int
    swizzle: Swizzle | None = None

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES or self.space not in SPACES:
            raise LayoutError(f"{self}: dtypes are {', '.join(DTYPES)}; memories are {', '.join(SPACES)}")

    def __str__(self) -> str:
        swizzle = [str(self.swizzle)] if self.swizzle else []
        return ", ".join([self.dtype, self.space, f"align<{self.align}>", *swizzle])

    @property
    def bytes(self) -> int:
        """Of an element."""
        return BITS[self.dtype] // 8

    @property
    def span(self) -> int:
        """An offset of a multiple of so many bytes changes no bit that the swizzle reads or writes."""
        s = self.swizzle
        return 1 << (s.bits + s.base + abs(s.shift)) if s else 1


@dataclass(frozen=True)
class Place:
    """Where a tensor of a kernel starts: `base` + `high` + `low` elements. Only `low` is swizzled."""

    base: SSAValue
    high: Any = 0
    low: Any = 0


@dataclass(frozen=True)
class Tensor:
    """`place`: where it starts, once a kernel is lowered; no part of the type."""

    pointer: Pointer
    layout: Layout
    place: Place | None = field(default=None, compare=False)

    def moved(self, offset: Any, layout: Layout) -> Tensor:
        """The tensor that starts `offset` elements further, with another layout."""
        step = divisor(offset) * self.pointer.bytes
        pointer = replace(self.pointer, align=math.gcd(self.pointer.align, step))
        place = self.place
        if place is not None:
            far, near = split(offset, max(1, pointer.span // pointer.bytes))
            place = replace(place, high=place.high + far, low=place.low + near)
        return Tensor(pointer, layout, place)

    def __str__(self) -> str:
        return f'{self.pointer}, "{self.layout}"'


@dataclass(frozen=True)
class Coordinates:
    """A tensor whose elements are coordinates: `offset` is that of the first. Its strides step along modes."""

    offset: Any
    layout: Layout

    def moved(self, offset: Any, layout: Layout) -> Coordinates:
        """As for a tensor."""
        return Coordinates(self.offset if offset == 0 else _padded_sum(self.offset, offset), layout)

    def __str__(self) -> str:
        return f'"{nested.text(self.offset)}", "{self.layout}"'


def _padded_sum(a: tuple[Any, ...], b: tuple[Any, ...]) -> Any:
    return tuple_add(a, (*b, *[0] * (len(a) - len(b))))


class FieldsType(CuteType):
    """A type of several fields in angle brackets."""

    @classmethod
    def fields(cls, parser: AttrParser) -> Any:
        raise NotImplementedError

    @staticmethod
    def write(value: Any) -> str:
        return str(value)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        with parser.in_angle_brackets():
            place = parser.pos
            try:
                return cls.fields(parser)
            except (LayoutError, UsageError) as error:
                parser.raise_error(str(error), place, parser.pos)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.write(self.data)}>")


def _pointer(parser: AttrParser) -> tuple[Pointer, bool]:
    """A pointer's fields, and whether a comma follows them."""
    dtype = parser.parse_identifier()
    parser.parse_punctuation(",")
    space = parser.parse_identifier()
    parser.parse_punctuation(",")
    parser.parse_keyword("align")
    with parser.in_angle_brackets():
        align = parser.parse_integer(allow_boolean=False)
    more = parser.parse_optional_punctuation(",") is not None
    swizzle = None
    if more and parser.parse_optional_keyword("S") is not None:
        numbers = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_integer)
        swizzle = Swizzle(*numbers)
        more = parser.parse_optional_punctuation(",") is not None
    return Pointer(dtype, space, align, swizzle), more


@irdl_attr_definition
class PtrType(FieldsType):
    """A pointer: `!cute.ptr<f32, gmem, align<16>>`."""

    name = "cute.ptr"

    @classmethod
    def fields(cls, parser: AttrParser) -> Tensor:
        return Tensor(_pointer(parser)[0], Layout(1, 0))

    @staticmethod
    def write(value: Tensor) -> str:
        return str(value.pointer)


@irdl_attr_definition
class MemRefType(FieldsType):
    """A tensor in memory."""

    name = "cute.memref"

    @classmethod
    def fields(cls, parser: AttrParser) -> Tensor:
        pointer, more = _pointer(parser)
        if not more:
            raise LayoutError("a memref ends with its layout in quotes")
        return Tensor(pointer, Layout.parse(literal(parser)))


@irdl_attr_definition
class CoordTensorType(FieldsType):
    """A tensor of coordinates: `!cute.coord_tensor<"(0,0)", "(8,4):(1@0,1@1)">`."""

    name = "cute.coord_tensor"

    @classmethod
    def fields(cls, parser: AttrParser) -> Coordinates:
        offset = nested.parse(tuple_literal(parser))
        parser.parse_punctuation(",")
        return Coordinates(offset, Layout.parse(literal(parser)))


def _tile_text(tile: tuple[Any, ...]) -> str:
    return "[" + ";".join("_" if p is None else str(p) if isinstance(p, Layout) else f"{p}:1" for p in tile) + "]"


def _named(parser: AttrParser, name: str) -> str:
    parser.parse_punctuation(",")
    parser.parse_keyword(name)
    parser.parse_punctuation("=")
    return literal(parser)


@irdl_attr_definition
class TiledMmaType(FieldsType):
    """`!cute.tiled_mma<"mma.m16n8k16.f32.bf16", atom_layout_MNK = "(2,2,1):(1,2,4)", permutation_MNK = "[_;_;_]">`."""

    name = "cute.tiled_mma"

    @classmethod
    def fields(cls, parser: AttrParser) -> TiledMma:
        atom = find(parser.parse_str_literal())
        threads = Layout.parse(_named(parser, "atom_layout_MNK"))
        m, n, k = parse_tile(_named(parser, "permutation_MNK"))
        return TiledMma(atom, threads, (m, n, k))

    @staticmethod
    def write(value: TiledMma) -> str:
        tile = _tile_text(value.permutation)
        return f'"{value.atom.name}", atom_layout_MNK = "{value.threads}", permutation_MNK = "{tile}"'


@irdl_attr_definition
class TiledCopyType(FieldsType):
    """`!cute.tiled_copy<"cp.async.b128", bits<16>, layout_copy_tv = "((4,32),8):((256,1),32)", tiler_mn = "[32:1;_]">`;
    an atom alone has no layout and no tile."""

    name = "cute.tiled_copy"

    @classmethod
    def fields(cls, parser: AttrParser) -> TiledCopy:
        name = parser.parse_str_literal()
        parser.parse_punctuation(",")
        parser.parse_keyword("bits")
        with parser.in_angle_brackets():
            bits = parser.parse_integer(allow_boolean=False)
        layout = Layout.parse(_named(parser, "layout_copy_tv"))
        return TiledCopy(CopyAtom(name, bits), layout, parse_tile(_named(parser, "tiler_mn")))

    @staticmethod
    def write(value: TiledCopy) -> str:
        tile = _tile_text(value.tiler)
        atom = f'"{value.atom.name}", bits<{value.atom.bits}>'
        return f'{atom}, layout_copy_tv = "{value.thread_values}", tiler_mn = "{tile}"'


TENSOR_TYPES: list[type[CuteType]] = [PtrType, MemRefType, CoordTensorType, TiledMmaType, TiledCopyType]
