"""Element-wise operations and matrix products."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute

from .. import types as t
from ..types import spell
from .base import (
    IEEE,
    approximate,
    booleans,
    element,
    floats,
    flushing,
    integers,
    modes,
    need,
    of,
    only_f32,
    rule,
    same,
    same_shape,
    shape,
    word,
)


@rule("addf", "subf", "mulf", "fma")
def _float_arithmetic(op: Any) -> None:
    same("operand and result types", op.results[0], *op.operands)
    floats(op.results[0])
    modes(op, IEEE)
    flushing(op)


@rule("divf", "sqrt")
def _division(op: Any) -> None:
    same("operand and result types", op.results[0], *op.operands)
    floats(op.results[0])
    approximate(op, ("approx", "full") if op.name.endswith("divf") else ("approx",))
    flushing(op)


@rule(
    "absf", "negf", "ceil", "floor", "exp", "exp2", "log", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "rsqrt",
    "atan2", "pow", "remf", "maxf", "minf",
)  # fmt: skip
def _function(op: Any) -> None:
    same("operand and result types", op.results[0], *op.operands)
    floats(op.results[0])
    flushing(op)
    if (mode := getattr(op, "rounding_mode", None)) is not None:
        modes(op, ("full", "approx"))
        if word(mode) == "approx":
            only_f32(op, "rounding<approx>")


@rule("fpowi")
def _integer_power(op: Any) -> None:
    same("source and result types", op.results[0], op.source)
    floats(op.source)
    of(op.exponent, (t.i1, t.i8, t.i16, t.i32), "i1, i8, i16 or i32")
    same_shape(op.source, op.exponent)


@rule(
    "addi", "subi", "muli", "andi", "ori", "xori", "maxi", "mini", "remi", "shli", "shri", "mulhii", "negi", "absi",
)  # fmt: skip
def _integer(op: Any) -> None:
    same("operand and result types", op.results[0], *op.operands)
    integers(op.results[0])
    if op.name.endswith("negi"):
        need(word(op.overflow) != "no_unsigned_wrap", "overflow<no_unsigned_wrap> is not possible here")


@rule("divi")
def _integer_division(op: Any) -> None:
    _integer(op)
    modes(op, ("zero", "positive_inf", "negative_inf"), "rounding")
    floor_of_unsigned = word(op.rounding) == "negative_inf" and word(op.signedness) == "unsigned"
    need(not floor_of_unsigned, "rounding<negative_inf> of unsigned integers is not possible: use zero")


@rule("cmpf", "cmpi")
def _compare(op: Any) -> None:
    same("operand types", op.lhs, op.rhs)
    (floats if op.name.endswith("cmpf") else integers)(op.lhs)
    booleans(op.results[0], op.lhs, "the result")


@rule("select")
def _select(op: Any) -> None:
    same("value and result types", op.results[0], op.val_if_true, op.val_if_false)
    booleans(op.cond, op.results[0], "the condition")
    need(element(op.results[0]) != t.f4e2m1fn, "f4 cannot be selected: extend it first")


PRODUCTS: dict[Attribute, tuple[Attribute, ...]] = {
    t.f8e4m3fn: (t.f16, t.f32), t.f8e5m2: (t.f16, t.f32), t.f16: (t.f16, t.f32), t.bf16: (t.f32,), t.tf32: (t.f32,),
    t.f32: (t.f32,), t.f64: (t.f64,), t.i8: (t.i32,),
}  # fmt: skip


@rule("mmaf", "mmai")
def _product(op: Any) -> None:
    same("accumulator and result types", op.acc, op.results[0])
    need(element(op.lhs) == element(op.rhs), f"operands differ: {spell(op.lhs.type)} and {spell(op.rhs.type)}")
    possible = PRODUCTS.get(element(op.lhs), ())
    possible = possible if (element(op.lhs) == t.i8) == op.name.endswith("mmai") else ()
    need(
        element(op.acc) in possible,
        f"a product of {spell(element(op.lhs))} cannot accumulate in {spell(element(op.acc))}"
        + (f", only in {' or '.join(map(spell, possible))}" if possible else ""),
    )
    _product_shapes(op)


# The numbers of elements along K that may share a scale, by the types of element and scale.
BLOCKS: dict[tuple[Attribute, Attribute], tuple[int, ...]] = {
    (t.f8e4m3fn, t.f8e8m0fnu): (32,), (t.f8e5m2, t.f8e8m0fnu): (32,),
    (t.f4e2m1fn, t.f8e4m3fn): (16,), (t.f4e2m1fn, t.f8e8m0fnu): (16, 32), (t.f4e2m1fn, t.f8e5m3fnu): (16, 32),
}  # fmt: skip


@rule("mmaf_scaled")
def _scaled_product(op: Any) -> None:
    same("accumulator and result types", op.acc, op.results[0])
    of(op.acc, (t.f32,), "f32")
    kinds = element(op.lhs), element(op.lhs_scale)
    need(
        (element(op.rhs), element(op.rhs_scale)) == kinds, "the operands, or their scales, have different element types"
    )
    need(kinds in BLOCKS, f"a product of {spell(kinds[0])} cannot be scaled by {spell(kinds[1])}")
    _product_shapes(op)
    a, b = shape(op.lhs), shape(op.rhs)
    scales = [((*a[:-1], a[-1] // n), (*b[:-2], b[-2] // n, b[-1])) for n in BLOCKS[kinds]]
    need(
        (shape(op.lhs_scale), shape(op.rhs_scale)) in scales,
        f"{spell(op.lhs_scale.type)} and {spell(op.rhs_scale.type)} do not have a scale for each "
        f"{' or '.join(map(str, BLOCKS[kinds]))} elements along K",
    )


def _product_shapes(op: Any) -> None:
    a, b, c = shape(op.lhs), shape(op.rhs), shape(op.acc)
    fits = len(a) == len(b) == len(c) in (2, 3) and a[-1] == b[-2] and c == (*a[:-1], b[-1]) and a[:-2] == b[:-2]
    need(fits, f"shapes {a}, {b} and {c} do not fit a matrix product: (M, K), (K, N), (M, N), or batches of them")
