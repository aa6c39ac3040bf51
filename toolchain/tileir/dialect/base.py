"""The base class of all operations: their bytecode opcode, and the bytecode version that introduced them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, TypeVar

from xdsl.ir import Attribute
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, irdl_op_definition

Version = tuple[int, int]
V13_1, V13_2, V13_3, V13_4, V13_5 = (13, 1), (13, 2), (13, 3), (13, 4), (13, 5)
VERSIONS: tuple[Version, ...] = (V13_1, V13_2, V13_3, V13_4, V13_5)
LATEST = VERSIONS[-1]
Op = TypeVar("Op", bound="TileOp")
SEGMENTS = AttrSizedOperandSegments(as_property=True)


class TileOp(IRDLOperation):
    """An operation of Tile IR.

    Fields are declared in bytecode order: results, properties, operands, regions. The bytecode codec derives an
    operation's encoding from them, so a new operation needs nothing but its declaration.
    """

    OPCODE: ClassVar[int]
    SINCE: ClassVar[Version]
    FIELDS_SINCE: ClassVar[Mapping[str, Version]]
    """Fields that did not exist in bytecode 13.1, each with the version that introduced it."""
    DEFAULTS: ClassVar[Mapping[str, Attribute]]
    """The value that older bytecode implies for a required property of `FIELDS_SINCE`."""
    ONE_EACH: ClassVar[Mapping[str, str]]
    """Properties that hold one boolean for each operand of a group, with that group's name. Absent means all false."""


def tile_op(
    mnemonic: str,
    opcode: int,
    *,
    since: Version = V13_1,
    fields_since: Mapping[str, Version] | None = None,
    defaults: Mapping[str, Attribute] | None = None,
    one_each: Mapping[str, str] | None = None,
) -> Callable[[type[Op]], type[Op]]:
    """Defines an operation: its name in text, its opcode, and the parts that came after bytecode 13.1."""

    def define(cls: type[Op]) -> type[Op]:
        cls.name = f"cuda_tile.{mnemonic}"
        defined = irdl_op_definition(cls)
        defined.OPCODE, defined.SINCE = opcode, since
        defined.FIELDS_SINCE, defined.DEFAULTS, defined.ONE_EACH = fields_since or {}, defaults or {}, one_each or {}
        return defined

    return define
