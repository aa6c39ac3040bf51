"""Which element types and property values the verifier accepts for an operation: found by trying them all.

So the reference says what the rules of the dialect say, and there is no second list of types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import OptPropertyDef

from toolchain.tileir.dialect import types as t
from toolchain.tileir.dialect.attrs import DenseAttr
from toolchain.tileir.dialect.base import TileOp
from toolchain.tileir.dialect.rules import RULES, Invalid
from toolchain.tileir.dialect.rules.base import check_tile
from toolchain.tileir.text.formats import ENUMS, FORMATS

MOST_GROUPS = 3  # of fields whose types vary independently; there are 16 scalars to try for each


@dataclass(frozen=True)
class Accepted:
    """`groups`: fields that share an element type. `types`: the scalars of each group, in every way that is accepted.
    `values`: by property, each word of an enumeration (`set` for a flag) with the ways that it is accepted in."""

    groups: tuple[tuple[str, ...], ...]
    types: frozenset[tuple[Attribute, ...]]
    values: Mapping[str, Mapping[str, frozenset[tuple[Attribute, ...]]]]


def mnemonic(op: TileOp) -> str:
    return op.name.removeprefix("cuda_tile.")


def fields(op: TileOp) -> dict[str, tuple[SSAValue, ...]]:
    """The results and operands by the names that the dialect gives them; an absent one has none."""
    definition = op.get_irdl_definition()
    found: dict[str, tuple[SSAValue, ...]] = {}
    for name, _ in (*definition.results, *definition.operands):
        value: Any = getattr(op, name)
        found[name] = () if value is None else (value,) if isinstance(value, SSAValue) else tuple(value)
    return found


def base(kind: Attribute) -> Attribute | None:
    """The scalar that a tile, pointer or view is made of; None of a token."""
    match kind:
        case t.TileType() | t.TensorViewType():
            return base(kind.element_type)
        case t.TileViewType():
            return base(kind.tensor_view)
        case t.PtrType():
            return base(kind.pointee)
        case _:
            return kind if kind in t.SCALARS else None


@cache
def with_base(kind: Attribute, scalar: Attribute) -> Attribute:
    """The same type made of another scalar."""
    match kind:
        case t.TileType():
            return t.TileType(kind.shape, with_base(kind.element_type, scalar))
        case t.TensorViewType():
            return t.TensorViewType(kind.shape, kind.strides, scalar, kind.ptr_attr)
        case t.TileViewType():
            view = kind.tensor_view
            return _view(kind, t.TensorViewType(view.shape, view.strides, scalar, view.ptr_attr))
        case t.PtrType():
            return t.PtrType(scalar, kind.ptr_attr)
        case _:
            return scalar


def _view(kind: t.TileViewType, view: t.TensorViewType) -> Attribute:
    match kind:
        case t.PartitionViewType():
            return t.PartitionViewType(kind.tile_shape, view, kind.dim_map, kind.padding_value)
        case t.StridedViewType():
            return t.StridedViewType(kind.tile_shape, kind.traversal_strides, view, kind.dim_map, kind.padding_value)
        case t.GatherScatterViewType():
            return t.GatherScatterViewType(kind.tile_shape, view, kind.sparse_dim, kind.padding_value)
        case _:
            raise TypeError(f"{kind.name} is a view that the reference does not know")


def groups(op: TileOp) -> tuple[tuple[str, ...], ...]:
    """The fields whose element types are the same: as the text's form says it, or as they are in this operation."""
    present = {name: base(values[0].type) for name, values in fields(op).items() if values}
    typed = {name: scalar for name, scalar in present.items() if scalar is not None}
    stated = re.findall(r"<([\w,]+)>", FORMATS.get(mnemonic(op), ""))
    found = [tuple(name for name in group.split(",") if name in typed) for group in stated]
    if not found or len(found) > MOST_GROUPS or {name for group in found for name in group} != typed.keys():
        found = [tuple(n for n in typed if typed[n] == scalar) for scalar in dict.fromkeys(typed.values())]
    return tuple(group for group in found if group)


def _choices(op: TileOp) -> dict[str, list[tuple[str, Attribute | None]]]:
    """The values to try for each property, each with its word; an optional one may be absent."""
    found: dict[str, list[tuple[str, Attribute | None]]] = {}
    for name, definition in op.get_irdl_definition().properties.items():
        absent = [("", None)] if isinstance(definition, OptPropertyDef) else []
        if name in ENUMS:
            kind: Any = ENUMS[name]
            found[name] = [*absent, *((str(word.value), kind(word)) for word in kind.enum_type)]
        elif absent and definition.constr.verifies(UnitAttr()):
            found[name] = [*absent, ("set", UnitAttr())]
    return found


def accepted(op: TileOp) -> Accepted:
    """What `op` may be made of, with its shapes as they are."""
    grouped, choices = groups(op), _choices(op)
    trial = _Trial.of(op, grouped)
    types: set[tuple[Attribute, ...]] = set()
    values: dict[str, dict[str, set[tuple[Attribute, ...]]]] = {name: {} for name in choices}
    for scalars in product(t.SCALARS, repeat=len(grouped)):
        parts = trial.typed(scalars)
        # With many groups the types do not depend on properties, and there are too many to try with every one.
        if parts is None or (len(grouped) == MOST_GROUPS and not trial.holds(parts, op.properties)):
            continue
        for chosen in product(*choices.values()):
            named = {name: value for name, (_, value) in zip(choices, chosen, strict=True)}
            if trial.holds(parts, {**op.properties, **named}):
                types.add(scalars)
                for name, (word, _) in zip(choices, chosen, strict=True):
                    if word:
                        values[name].setdefault(word, set()).add(scalars)
    frozen = {name: {word: frozenset(found) for word, found in words.items()} for name, words in values.items()}
    return Accepted(grouped, frozenset(types), frozen)


@dataclass(frozen=True)
class _Trial:
    """An operation to try with other types. Its rule sees a stand-in, since there are thousands to make.

    `fields`: name, types and group of its results and operands; the group is -1 where the types stay.
    """

    op: TileOp
    fields: tuple[tuple[str, tuple[Attribute, ...], int], ...]
    results: int

    @classmethod
    def of(cls, op: TileOp, grouped: Sequence[Sequence[str]]) -> _Trial:
        group = {name: number for number, names in enumerate(grouped) for name in names}
        found = tuple((n, tuple(v.type for v in values), group.get(n, -1)) for n, values in fields(op).items())
        return cls(op, found, len(op.get_irdl_definition().results))

    def typed(self, scalars: Sequence[Attribute]) -> Mapping[str, tuple[SimpleNamespace, ...]] | None:
        """Stand-ins for its results and operands with the groups made of these scalars; None if no tile can be."""
        parts = {
            name: tuple(_value(with_base(kind, scalars[group]) if group >= 0 else kind) for kind in kinds)
            for name, kinds, group in self.fields
        }
        return parts if all(value.fits for values in parts.values() for value in values) else None

    def holds(
        self, parts: Mapping[str, tuple[SimpleNamespace, ...]], properties: Mapping[str, Attribute | None]
    ) -> bool:
        """Whether the verifier accepts the operation made of these."""
        names = list(parts)
        results = [value for name in names[: self.results] for value in parts[name]]
        operands = [value for name in names[self.results :] for value in parts[name]]
        given: dict[str, Any] = dict.fromkeys(self.op.get_irdl_definition().properties) | dict(properties)
        if isinstance(given.get("value"), DenseAttr):
            given["value"] = DenseAttr(bytes(t.byte_width(results[0].type.element_type)), results[0].type)
        named = {
            name: (values or (None,))[0] if isinstance(getattr(self.op, name), SSAValue | None) else values
            for name, values in parts.items()
        }
        made = SimpleNamespace(name=self.op.name, results=results, operands=operands, **named, **given)
        try:
            RULES[mnemonic(self.op)](made)
        except Invalid:
            return False
        return True


@cache
def _value(kind: Attribute) -> SimpleNamespace:
    """A value of this type. `fits`: a tile of it is possible."""
    try:
        if isinstance(kind, t.TileType):
            check_tile(kind)
    except Invalid:
        return SimpleNamespace(type=kind, fits=False)
    return SimpleNamespace(type=kind, fits=True)
