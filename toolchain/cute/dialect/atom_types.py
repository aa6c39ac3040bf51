"""The types of atoms as values: an instruction of a product or of a copy, and the operands that it keeps.

`!cute_nvgpu.mma_atom<"wgmma.m64n128k16.f32.bf16">`, `!cute_nvgpu.copy_atom<"cp.async.b128", bits<16>>`,
`!cute_nvgpu.tma_atom<"load">`.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser

from ...errors import UsageError
from ..atoms.copy_atom import TMA_REDUCTIONS, CopyAtom
from ..atoms.mma import MmaAtom, find
from .tensors import FieldsType

TMA = ("load", "load_multicast", "store", "prefetch", *(f"reduce.{how}" for how in TMA_REDUCTIONS))


@irdl_attr_definition
class MmaAtomType(FieldsType):
    """An instruction of a product."""

    name = "cute_nvgpu.mma_atom"

    @classmethod
    def fields(cls, parser: AttrParser) -> MmaAtom:
        return find(parser.parse_str_literal())

    @staticmethod
    def write(value: MmaAtom) -> str:
        return f'"{value.name}"'


@irdl_attr_definition
class CopyAtomType(FieldsType):
    """An instruction of a copy, for elements of a number of bits."""

    name = "cute_nvgpu.copy_atom"

    @classmethod
    def fields(cls, parser: AttrParser) -> CopyAtom:
        name = parser.parse_str_literal()
        parser.parse_punctuation(",")
        parser.parse_keyword("bits")
        with parser.in_angle_brackets():
            return CopyAtom(name, parser.parse_integer(allow_boolean=False))

    @staticmethod
    def write(value: CopyAtom) -> str:
        return f'"{value.name}", bits<{value.bits}>'


@irdl_attr_definition
class TmaAtomType(FieldsType):
    """A copy of a box of a tensor by TMA."""

    name = "cute_nvgpu.tma_atom"

    @classmethod
    def fields(cls, parser: AttrParser) -> str:
        kind = parser.parse_str_literal()
        if kind not in TMA:
            raise UsageError(f"no copy {kind!r} by TMA", hint=f"one of {', '.join(TMA)}")
        return kind

    @staticmethod
    def write(value: Any) -> str:
        return f'"{value}"'


ATOM_TYPES: list[type[Attribute]] = [MmaAtomType, CopyAtomType, TmaAtomType]
