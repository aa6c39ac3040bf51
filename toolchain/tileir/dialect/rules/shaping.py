"""Constants, and operations that rearrange or fold tiles."""

from __future__ import annotations

import math
from typing import Any

from .. import types as t
from ..attrs import is_dense
from ..types import TileType, spell
from .base import Invalid, element, integers, need, rule, same, same_shape, shape, width


@rule("constant")
def _constant(op: Any) -> None:
    kind, value = op.results[0].type, op.value
    need(value.type == kind, f"the result must be {spell(value.type)} as the value, not {spell(kind)}")
    need(kind.element_type in t.POINTEES, f"a constant cannot have type {spell(kind)}")
    need(is_dense(value.raw, kind), f"{len(value.raw)} bytes cannot be a value of {spell(kind)}")


@rule("iota")
def _iota(op: Any) -> None:
    integers(op.results[0])
    need(len(shape(op.results[0])) == 1, f"the result must have rank 1, not {spell(op.results[0].type)}")
    fits = shape(op.results[0])[0] <= 1 << width(element(op.results[0]))
    need(fits, f"{spell(element(op.results[0]))} is too narrow to count to {shape(op.results[0])[0]}")


def _same_element(op: Any) -> None:
    for value in op.operands:
        if isinstance(value.type, TileType) and element(value) != element(op.results[0]):
            raise Invalid(f"element types differ: {spell(value.type)} and {spell(op.results[0].type)}")


@rule("reshape")
def _reshape(op: Any) -> None:
    _same_element(op)
    sizes = [math.prod(shape(v)) for v in (op.operands[0], op.results[0])]
    need(sizes[0] == sizes[1], f"{sizes[0]} elements cannot take the shape of {spell(op.results[0].type)}")


@rule("broadcast")
def _broadcast(op: Any) -> None:
    _same_element(op)
    a, b = shape(op.operands[0]), shape(op.results[0])
    fits = len(a) == len(b) and all(m in (1, n) for m, n in zip(a, b, strict=False))
    need(fits, f"{spell(op.operands[0].type)} cannot be repeated to {spell(op.results[0].type)}: only extents of 1 can")


@rule("permute")
def _permute(op: Any) -> None:
    _same_element(op)
    a, order = shape(op.operands[0]), op.permutation.data
    need(len(a) > 1, f"needs two or more dimensions, not {spell(op.operands[0].type)}")
    need(sorted(order) == list(range(len(a))), f"{list(order)} is not a permutation of {len(a)} dimensions")
    wanted = TileType([a[d] for d in order], element(op.operands[0]))
    need(op.results[0].type == wanted, f"gives {spell(wanted)}, not {spell(op.results[0].type)}")


@rule("cat")
def _cat(op: Any) -> None:
    _same_element(op)
    a, b, dim = shape(op.lhs), shape(op.rhs), op.dim.data
    need(
        len(a) == len(b) and 0 <= dim < len(a),
        f"dimension {dim} does not exist in both {spell(op.lhs.type)} and {spell(op.rhs.type)}",
    )
    apart = [d for d in range(len(a)) if d != dim and a[d] != b[d]]
    need(not apart, f"{spell(op.lhs.type)} and {spell(op.rhs.type)} differ in other dimensions than {dim}")
    wanted = TileType([n + b[d] if d == dim else n for d, n in enumerate(a)], element(op.lhs))
    need(op.results[0].type == wanted, f"gives {spell(wanted)}, not {spell(op.results[0].type)}")


@rule("extract", "insert")
def _subtile(op: Any) -> None:
    inserts = op.name.endswith("insert")
    part, whole = (op.source, op.destination) if inserts else (op.results[0], op.source)
    if inserts:
        same("destination and result types", whole, op.results[0])
    a, b = shape(whole), shape(part)
    need(element(whole) == element(part), "element types differ")
    fits = len(a) == len(b) and all(m % n == 0 for m, n in zip(a, b, strict=False))
    need(fits, f"{spell(part.type)} does not divide {spell(whole.type)} evenly")
    need(len(op.indices) == len(a), f"there are {len(a)} dimensions, but {len(op.indices)} indices")
    for index in op.indices:
        need(index.type == TileType((), t.i32), f"an index must be tile<i32>, not {spell(index.type)}")


@rule("reduce", "scan")
def _combine(op: Any) -> None:
    need(len(op.inputs) > 0, "needs at least one tile")
    for value in op.inputs:
        same_shape(op.inputs[0], value)
        need(element(value) in t.SCALARS, f"numbers are needed, not {spell(value.type)}")
    dim, sizes = op.dim.data, shape(op.inputs[0])
    need(0 <= dim < len(sizes), f"dim={dim} is not a dimension of {spell(op.inputs[0].type)}")
    kept = sizes if op.name.endswith("scan") else sizes[:dim] + sizes[dim + 1 :]
    wanted = [TileType(kept, element(v)) for v in op.inputs]
    found = [r.type for r in op.results]
    need(found == wanted, f"gives ({', '.join(map(spell, wanted))}), not ({', '.join(map(spell, found))})")
    numbers = op.identities.data
    need(len(numbers) == len(op.inputs), f"there are {len(op.inputs)} tiles, but {len(numbers)} identities")
    for number, value in zip(numbers, op.inputs, strict=True):
        need(
            number.type == element(value), f"an identity of type {spell(number.type)} does not fit {spell(value.type)}"
        )
    scalars = [TileType((), element(v)) for v in op.inputs for _ in range(2)]
    arguments = [a.type for a in op.body.block.args]
    need(arguments == scalars, f"the region takes ({', '.join(map(spell, arguments))}), not two scalars per tile")
