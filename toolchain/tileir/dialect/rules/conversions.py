"""Conversions between element types."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute

from .. import types as t
from ..types import spell
from .base import IEEE, element, integers, modes, need, of, pointee, rule, same_shape, shape, width

# Digits, and the exponents of the smallest normal and the largest number, of each float.
FLOATS: dict[Attribute, tuple[int, int, int]] = {
    t.f16: (11, -14, 15), t.bf16: (8, -126, 127), t.tf32: (11, -126, 127), t.f32: (24, -126, 127),
    t.f64: (53, -1022, 1023), t.f4e2m1fn: (2, 0, 2), t.f8e4m3fn: (4, -6, 8), t.f8e5m2: (3, -14, 15),
    t.f8e5m3fnu: (4, -14, 16), t.f8e8m0fnu: (1, -127, 127),
}  # fmt: skip


def _roundings(source: Attribute, target: Attribute) -> tuple[str, ...]:
    """The rounding modes of a conversion for which the compiler has an instruction or a sequence of instructions."""
    if target == t.f8e8m0fnu:
        return ("zero", "positive_inf")
    if width(target) <= 8:
        return ("nearest_even",)
    (digits, low, high), (digits_to, low_to, high_to) = FLOATS[source], FLOATS[target]
    if digits <= digits_to and low >= low_to and high <= high_to:  # exact: every mode gives the same
        return (*IEEE, "nearest_away")
    if (source, target) == (t.f32, t.tf32):
        return ("nearest_even", "zero", "nearest_away")
    return IEEE if (source, target) == (t.f64, t.f32) else ("nearest_even", "zero")


@rule("ftof")
def _float_to_float(op: Any) -> None:
    source, target = op.operands[0], op.results[0]
    same_shape(source, target)
    of(source, t.FLOATS, "floats")
    of(target, t.FLOATS, "floats")
    need(source.type != target.type, f"converts {spell(source.type)} to itself")
    modes(op, _roundings(element(source), element(target)))


@rule("itof", "ftoi")
def _number(op: Any) -> None:
    source, target = op.operands[0], op.results[0]
    same_shape(source, target)
    to_float = op.name.endswith("itof")
    integers(source if to_float else target)
    of(target if to_float else source, t.FLOATS, "floats")
    need(element(target) != t.f8e8m0fnu, "integers do not become f8E8M0FNU: convert them to another float first")
    modes(op, ("nearest_even",) if to_float else ("nearest_int_to_zero",))


@rule("exti", "trunci")
def _resize(op: Any) -> None:
    source, target = op.operands[0], op.results[0]
    same_shape(source, target)
    of(source, t.INTEGERS, "integers")
    of(target, t.INTEGERS, "integers")
    low, high = (source, target) if op.name.endswith("exti") else (target, source)
    wider = "wider" if op.name.endswith("exti") else "narrower"
    need(width(element(low)) < width(element(high)), f"the result must be {wider} than {spell(source.type)}")


@rule("bitcast")
def _bitcast(op: Any) -> None:
    source, target = op.operands[0], op.results[0]
    same_shape(source, target)
    kinds = [element(source), element(target)]
    need(not any(isinstance(k, t.PtrType) for k in kinds), "pointers are converted by ptr_to_int and int_to_ptr")
    need(t.i4 not in kinds, "i4 cannot be computed with, only packed, resized and moved: extend it first")
    need(width(kinds[0]) == width(kinds[1]), f"{spell(kinds[0])} and {spell(kinds[1])} differ in width")


@rule("int_to_ptr", "ptr_to_int", "ptr_to_ptr")
def _pointer_cast(op: Any) -> None:
    source, target = op.operands[0], op.results[0]
    same_shape(source, target)
    for value, kind in zip((source, target), op.name.rpartition(".")[2].split("_to_"), strict=True):
        if kind == "ptr":
            pointee(value)
        else:
            of(value, (t.i64,), "i64")


@rule("pack", "unpack")
def _pack(op: Any) -> None:
    source, target = op.operands[0], op.results[0]
    byte, other = (target, source) if op.name.endswith(".pack") else (source, target)
    of(byte, (t.i8,), "i8")
    need(len(shape(source)) == len(shape(target)) == 1, "packs and unpacks only rank-1 tiles")
    need(element(other) in t.SCALARS, f"a tile of numbers is needed, not {spell(other.type)}")
    bits = 32 if element(other) == t.tf32 else width(element(other))
    need(bits != 8, f"{spell(element(other))} already has 8 bits: use bitcast")
    fits = shape(byte)[0] * 8 == shape(other)[0] * bits
    need(fits, f"{spell(source.type)} and {spell(target.type)} do not have the same size")
