"""Loops, branches, assumptions, assertions and prints."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute

from .. import types as t
from ..attrs import BoundedAttr, DivByAttr
from ..printf import Conversion, parse
from ..types import TileType, spell
from .base import Invalid, element, need, of, rule, same, scalar_integer, shape, width


@rule("for")
def _for(op: Any) -> None:
    same("bounds and step", op.lowerBound, op.upperBound, op.step)
    scalar_integer(op.lowerBound, "a bound")
    _carried(op, [op.lowerBound.type])


@rule("loop")
def _loop(op: Any) -> None:
    _carried(op, [])
    _no_views(op)


def _carried(op: Any, first: list[Attribute]) -> None:
    initial = [v.type for v in op.initValues]
    for kind in initial:
        need(isinstance(kind, TileType | t.TokenType), f"a {spell(kind)} cannot be carried through a loop")
    arguments = [a.type for a in op.body.block.args]
    need(arguments == first + initial, f"the body takes ({', '.join(map(spell, arguments))}), not what is passed in")
    if op.name.endswith("for"):
        found = [r.type for r in op.results]
        need(
            found == initial, f"gives ({', '.join(map(spell, found))}), but carries ({', '.join(map(spell, initial))})"
        )


@rule("if")
def _if(op: Any) -> None:
    need(op.condition.type == TileType((), t.i1), f"the condition must be tile<i1>, not {spell(op.condition.type)}")
    need(len(op.then_region.blocks) == 1, "needs one block for a true condition")
    need(len(op.else_region.blocks) <= 1, "else has more than one block")
    need(not op.results or bool(op.else_region.blocks), "gives results, so it needs an else that yields them")
    _no_views(op)


def _no_views(op: Any) -> None:
    for result in op.results:
        kind = result.type
        need(isinstance(kind, TileType | t.TokenType), f"a {spell(kind)} cannot be its result")


@rule("assert")
def _assert(op: Any) -> None:
    of(op.operands[0], (t.i1,), "i1")


@rule("print_tko")
def _print(op: Any) -> None:
    try:
        parts = parse(op.str.data)
    except ValueError as error:
        raise Invalid(str(error)) from error
    conversions = sum(isinstance(part, Conversion) for part in parts)
    need(conversions == len(op.args), f"the text has {conversions} conversions, but there are {len(op.args)} values")


@rule("assume")
def _assume(op: Any) -> None:
    same("operand and result types", op.value, op.results[0])
    kind, predicate = op.value.type, op.predicate
    is_tile = isinstance(kind, TileType)
    if isinstance(predicate, DivByAttr):
        d = predicate.divisor
        need(d > 0 and d & (d - 1) == 0, f"div_by<{d}>: the divisor must be a power of two")
        need(d < 1 << 63, f"div_by<{d}>: the largest divisor is 2^62")
        need((is_tile and element(op.value) not in t.FLOATS) or isinstance(kind, t.TensorViewType),
             f"div_by is for integers, pointers and tensor views, not {spell(kind)}")  # fmt: skip
        need((predicate.every is None) == (predicate.along is None), "`every` and `along` must be given together")
        if predicate.along is not None:
            need(
                is_tile and 0 <= predicate.along < len(shape(op.value)),
                f"along {predicate.along}: there is no such dimension",
            )
            size = shape(op.value)[predicate.along]
            need(0 <= (predicate.every or 0) <= size, f"every {predicate.every}: the dimension has {size}")
        return
    need(is_tile, f"{spell(kind)} is not a tile")
    if isinstance(predicate, BoundedAttr):
        of(op.value, t.INTEGERS, "integers")
        most = (1 << (width(element(op.value)) - 1)) - 1
        for bound in (predicate.lb, predicate.ub):
            fits = bound is None or -most - 1 <= bound <= most
            need(fits, f"bound {bound} is outside of {spell(element(op.value))}, from {-most - 1} to {most}")
        ordered = predicate.lb is None or predicate.ub is None or predicate.lb <= predicate.ub
        need(ordered, f"bounded<{predicate.lb}, {predicate.ub}>: no number lies between these bounds")
    else:
        need(element(op.value) not in t.FLOATS, f"same_elements is for integers and pointers, not {spell(kind)}")
        groups, sizes = predicate.data, shape(op.value)
        need(
            len(groups) == len(sizes),
            f"same_elements has {len(groups)} sizes, which do not match the rank of {spell(kind)}",
        )
        fits = all(0 <= group <= size for group, size in zip(groups, sizes, strict=True))
        need(fits, f"same_elements<{list(groups)}> does not fit into {spell(kind)}")
