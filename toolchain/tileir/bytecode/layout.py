"""How each operation is laid out in bytecode, derived from its declaration in the dialect.

opcode · result types · flags · attributes · operands · regions

- Result types are preceded by their count if the operation has a variadic operand or result.
- Flags are one bit for each optional field, attributes first. A unit attribute is its bit alone.
- A property of booleans, one for each operand of a group, has no bit: if absent, it is written as all false.
- A single variadic group comes last, and the total number of operands precedes them all. If there are several variadic
  groups, each is preceded by its own count.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    OptionalDef,
    OptPropertyDef,
    VarOperandDef,
    VarResultDef,
)

from ..dialect.base import V13_1, TileOp, Version


@dataclass(frozen=True)
class Field:
    """A property or an operand group. For a property, `kind` is its attribute class; if it holds one boolean for each
    operand of a group, `group` names that group."""

    name: str
    since: Version
    optional: bool = False
    variadic: bool = False
    kind: type[Attribute] | None = None
    default: Attribute | None = None
    group: str | None = None


@dataclass(frozen=True)
class Layout:
    """An operation's fields in one bytecode version. `segmented`: the sizes of the operand groups are a property.
    `later_results`: how many results, all tokens and behind the others, came with a newer version."""

    op: type[TileOp]
    results_counted: bool
    results: int
    later_results: int
    flags: tuple[Field, ...]
    attributes: tuple[Field, ...]
    operands: tuple[Field, ...]
    segmented: bool
    regions: int


def _kind(constraint: object) -> type[Attribute]:
    # `prop_def(A | B)` makes a union. Its members share one encoding, in which a tag tells them apart.
    return constraint.attr if isinstance(constraint, BaseAttr) else Attribute


def _is_variadic(definition: object) -> bool:
    return isinstance(definition, VarOperandDef) and not isinstance(definition, OptionalDef)


@functools.cache
def layout(op: type[TileOp], version: Version) -> Layout:
    """The layout of an operation in a bytecode version that has it (`op.SINCE <= version`)."""
    definition = op.get_irdl_definition()

    def since(name: str) -> Version:
        return op.FIELDS_SINCE.get(name, V13_1)

    properties = [
        Field(
            name,
            since(name),
            isinstance(d, OptPropertyDef),
            kind=_kind(d.constr),
            default=op.DEFAULTS.get(name),
            group=op.ONE_EACH.get(name),
        )
        for name, d in definition.properties.items()
        if name != "operandSegmentSizes"
    ]
    operands = tuple(
        Field(name, since(name), isinstance(d, OptionalDef), _is_variadic(d)) for name, d in definition.operands
    )
    flags = [f for f in (*properties, *operands) if f.optional and f.group is None]
    later = sum(since(name) > version for name, _ in definition.results)
    variadic_results = any(isinstance(d, VarResultDef) for _, d in definition.results)
    return Layout(
        op=op,
        results_counted=variadic_results or any(f.variadic for f in operands),
        results=len(definition.results) - later,
        later_results=later,
        flags=tuple(f for f in flags if f.since <= version),
        attributes=tuple(f for f in properties if f.kind is not UnitAttr and f.since <= version),
        operands=tuple(f for f in operands if f.since <= version),
        segmented=any(isinstance(o, AttrSizedOperandSegments) for o in definition.options),
        regions=len(definition.regions),
    )
