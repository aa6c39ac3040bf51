"""The base of all rules: their registration, and the checks of types that they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute, SSAValue

from .. import types as t
from ..types import TileType, spell

Rule = Callable[[Any], None]
RULES: dict[str, Rule] = {}
MAX_RANK_BITS = 24  # a tile has at most 2^24 elements


class Invalid(Exception):
    """A broken rule."""


def need(holds: bool, message: str) -> None:
    if not holds:
        raise Invalid(message)


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(check: Rule) -> Rule:
        for name in names:
            RULES[name] = check
        return check

    return register


# Checks of types


def same(what: str, *values: SSAValue) -> None:
    for other in values[1:]:
        if other.type != values[0].type:  # spelled only then: this runs for most operations
            raise Invalid(f"{what} differ: {spell(values[0].type)} and {spell(other.type)}")


def shape(value: SSAValue) -> tuple[int, ...]:
    return _tile(value).shape


def element(value: SSAValue) -> Attribute:
    return _tile(value).element_type


def _tile(value: SSAValue) -> TileType:
    kind = value.type
    if not isinstance(kind, TileType):
        raise Invalid(f"a tile is needed, not {spell(kind)}")
    return kind


def of(value: SSAValue, elements: Sequence[Attribute] | frozenset[Attribute], what: str) -> None:
    if element(value) not in elements:
        raise Invalid(f"a tile of {what} is needed, not {spell(value.type)}")


def integers(*values: SSAValue) -> None:
    for value in values:
        of(value, t.INTEGERS, "integers")
        need(element(value) != t.i4, "i4 cannot be computed with, only packed, resized and moved: extend it first")


ARITHMETIC = (t.f16, t.bf16, t.f32, t.f64)


def floats(*values: SSAValue) -> None:
    for value in values:
        of(value, ARITHMETIC, "f16, bf16, f32 or f64")


def pointee(value: SSAValue) -> Attribute:
    kind = element(value)
    if not isinstance(kind, t.PtrType):
        raise Invalid(f"a tile of pointers is needed, not {spell(value.type)}")
    return kind.pointee


def scalar_integer(value: SSAValue, what: str) -> None:
    if shape(value) != () or element(value) not in t.INTEGERS - {t.i4}:
        raise Invalid(f"{what} must be an integer scalar, not {spell(value.type)}")


def same_shape(a: SSAValue, b: SSAValue) -> None:
    need(shape(a) == shape(b), f"shapes differ: {spell(a.type)} and {spell(b.type)}")


def booleans(value: SSAValue, like: SSAValue, what: str) -> None:
    wanted = TileType(shape(like), t.i1)
    need(value.type == wanted, f"{what} must be {spell(wanted)}, not {spell(value.type)}")


def word(attribute: Any) -> str:
    return str(attribute.data.value)


def modes(op: Any, allowed: Sequence[str], name: str = "rounding_mode") -> None:
    mode = word(getattr(op, name))
    need(mode in allowed, f"rounding<{mode}> is not possible here: one of {', '.join(allowed)}")


IEEE = ("nearest_even", "zero", "negative_inf", "positive_inf")


def only_f32(op: Any, mode: str) -> None:
    need(element(op.results[0]) == t.f32, f"{mode} is for f32 only, not {spell(op.results[0].type)}")


def approximate(op: Any, extra: Sequence[str]) -> None:
    """Checks the rounding mode: one of IEEE's, or one of `extra`, which exist for f32 only."""
    modes(op, (*IEEE, *extra))
    if word(op.rounding_mode) in extra:
        only_f32(op, f"rounding<{word(op.rounding_mode)}>")


def flushing(op: Any) -> None:
    if getattr(op, "flush_to_zero", None) is not None:
        only_f32(op, "flush_to_zero")


def width(kind: Attribute) -> int:
    """The width of a scalar in bits."""
    return t.SCALARS[kind][1]


def check_tile(kind: TileType) -> None:
    """Checks a tile type: extents are powers of two, the number of elements is limited, and f4 comes in pairs, since
    two share a byte."""
    powers = all(n > 0 and n & (n - 1) == 0 for n in kind.shape)
    need(powers, f"the extents of {spell(kind)} must be powers of two")
    need(math.prod(kind.shape) <= 1 << MAX_RANK_BITS, f"{spell(kind)} has more than 2^{MAX_RANK_BITS} elements")
    need(
        kind.element_type != t.f4e2m1fn or math.prod(kind.shape) > 1,
        f"{spell(kind)} has one element of f4, but they come in pairs",
    )
    need(kind.element_type != t.PtrType(t.f4e2m1fn) or not kind.shape, "f4 is accessed through views: one pointer only")
