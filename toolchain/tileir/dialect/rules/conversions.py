"""Conversions between element types."""

from __future__ import annotations

from typing import Any

from .. import types as t
from ..types import spell
from .base import IEEE, element, integers, modes, need, of, pointee, rule, same_shape, shape, width


@rule("ftof")
def _float_to_float(op: Any) -> None:
    source, target = op.operands[0], op.results[0]
    same_shape(source, target)
    of(source, t.FLOATS, "floats")
    of(target, t.FLOATS, "floats")
    need(source.type != target.type, f"converts {spell(source.type)} to itself")
    modes(op, IEEE)


@rule("itof", "ftoi")
def _number(op: Any) -> None:
    source, target = op.operands[0], op.results[0]
    same_shape(source, target)
    to_float = op.name.endswith("itof")
    integers(source if to_float else target)
    of(target if to_float else source, t.FLOATS, "floats")
    modes(op, IEEE if to_float else ("nearest_int_to_zero",))


@rule("exti", "trunci")
def _resize(op: Any) -> None:
    source, target = op.operands[0], op.results[0]
    same_shape(source, target)
    integers(source, target)
    low, high = (source, target) if op.name.endswith("exti") else (target, source)
    wider = "wider" if op.name.endswith("exti") else "narrower"
    need(width(element(low)) < width(element(high)), f"the result must be {wider} than {spell(source.type)}")


@rule("bitcast")
def _bitcast(op: Any) -> None:
    source, target = op.operands[0], op.results[0]
    same_shape(source, target)
    kinds = [element(source), element(target)]
    need(not any(isinstance(k, t.PtrType) for k in kinds), "pointers are converted by ptr_to_int and int_to_ptr")
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
    need(len(shape(source)) == len(shape(target)) == 1, "packs and unpacks rank-1 tiles")
    need(element(other) in t.SCALARS, f"a tile of numbers is needed, not {spell(other.type)}")
    fits = shape(byte)[0] * 8 == shape(other)[0] * width(element(other))
    need(fits, f"{spell(source.type)} and {spell(target.type)} are not of the same size")
