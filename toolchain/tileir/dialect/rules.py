"""What each operation asks of its types and attributes. `RULES` by mnemonic; a rule raises `Invalid`.

Source: the operations section of the Tile IR specification, 13.1 to 13.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute, SSAValue

from . import types as t
from .attrs import BoundedAttr, DivByAttr
from .types import TileType, spell

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


# Questions about types


def same(what: str, first: SSAValue, *others: SSAValue) -> None:
    for other in others:
        need(other.type == first.type, f"{what} differ: {spell(first.type)} and {spell(other.type)}")


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
    need(element(value) in elements, f"a tile of {what} is needed, not {spell(value.type)}")


def integers(*values: SSAValue) -> None:
    for value in values:
        of(value, t.INTEGERS, "integers")


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
    need(
        shape(value) == () and element(value) in t.INTEGERS,
        f"{what} must be an integer scalar, not {spell(value.type)}",
    )


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
    """Rounding by an IEEE mode, or one of `extra`, which are for f32."""
    modes(op, (*IEEE, *extra))
    if word(op.rounding_mode) in extra:
        only_f32(op, f"rounding<{word(op.rounding_mode)}>")


def flushing(op: Any) -> None:
    if getattr(op, "flush_to_zero", None) is not None:
        only_f32(op, "flush_to_zero")


# Arithmetic


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
    "atan2", "fpowf", "remf", "maxf", "minf",
)  # fmt: skip
def _function(op: Any) -> None:
    same("operand and result types", op.results[0], *op.operands)
    floats(op.results[0])
    flushing(op)
    if (mode := getattr(op, "rounding_mode", None)) is not None:
        modes(op, ("full", "approx"))
        if word(mode) == "approx":
            only_f32(op, "rounding<approx>")


@rule(
    "addi", "subi", "muli", "andi", "ori", "xori", "maxi", "mini", "remi", "shli", "shri", "mulhii", "negi", "absi",
)  # fmt: skip
def _integer(op: Any) -> None:
    same("operand and result types", op.results[0], *op.operands)
    integers(op.results[0])


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
        f"no product of {spell(element(op.lhs))} accumulates in {spell(element(op.acc))}"
        + (f": {' or '.join(map(spell, possible))}" if possible else ""),
    )
    a, b, c = shape(op.lhs), shape(op.rhs), shape(op.acc)
    fits = len(a) == len(b) == len(c) in (2, 3) and a[-1] == b[-2] and c == (*a[:-1], b[-1]) and a[:-2] == b[:-2]
    need(fits, f"shapes {a}, {b} and {c} make no matrix product: (M, K), (K, N), (M, N), or batches of them")


# Conversions


def width(kind: Attribute) -> int:
    return t.SCALARS[kind][1]


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


# Shapes


def check_tile(kind: TileType) -> None:
    """A tile's own rules: extents are powers of two, and not too many elements."""
    powers = all(n > 0 and n & (n - 1) == 0 for n in kind.shape)
    need(powers, f"the extents of {spell(kind)} must be powers of two")
    need(math.prod(kind.shape) <= 1 << MAX_RANK_BITS, f"{spell(kind)} has more than 2^{MAX_RANK_BITS} elements")


@rule("constant")
def _constant(op: Any) -> None:
    kind, value = op.results[0].type, op.value
    need(value.type == kind, f"a value of type {spell(value.type)} for a result of type {spell(kind)}")
    need(kind.element_type in t.SCALARS, f"a tile of numbers is needed, not {spell(kind)}")
    check_tile(kind)
    size = t.byte_width(kind.element_type)
    count = math.prod(kind.shape)
    whole = -(-count // 8) if kind.element_type == t.i1 else count * size
    need(len(value.raw) in (size, whole), f"{len(value.raw)} bytes of value for {spell(kind)}")


@rule("iota")
def _iota(op: Any) -> None:
    integers(op.results[0])
    need(len(shape(op.results[0])) == 1, f"the result must have rank 1, not {spell(op.results[0].type)}")
    check_tile(op.results[0].type)
    fits = shape(op.results[0])[0] <= 1 << width(element(op.results[0]))
    need(fits, f"{spell(element(op.results[0]))} cannot count to {shape(op.results[0])[0]}")


def _same_element(op: Any) -> None:
    for value in op.operands:
        if isinstance(value.type, TileType) and element(value) != element(op.results[0]):
            raise Invalid(f"element types differ: {spell(value.type)} and {spell(op.results[0].type)}")


@rule("reshape")
def _reshape(op: Any) -> None:
    _same_element(op)
    check_tile(op.results[0].type)
    sizes = [math.prod(shape(v)) for v in (op.operands[0], op.results[0])]
    need(sizes[0] == sizes[1], f"{sizes[0]} elements cannot take the shape of {spell(op.results[0].type)}")


@rule("broadcast")
def _broadcast(op: Any) -> None:
    _same_element(op)
    check_tile(op.results[0].type)
    a, b = shape(op.operands[0]), shape(op.results[0])
    fits = len(a) == len(b) and all(m in (1, n) for m, n in zip(a, b, strict=False))
    need(fits, f"{spell(op.operands[0].type)} cannot be repeated to {spell(op.results[0].type)}: only extents of 1 can")


@rule("permute")
def _permute(op: Any) -> None:
    _same_element(op)
    a, order = shape(op.operands[0]), op.permutation.data
    need(sorted(order) == list(range(len(a))), f"{list(order)} is no permutation of {len(a)} dimensions")
    wanted = TileType([a[d] for d in order], element(op.operands[0]))
    need(op.results[0].type == wanted, f"gives {spell(wanted)}, not {spell(op.results[0].type)}")


@rule("cat")
def _cat(op: Any) -> None:
    _same_element(op)
    a, b, dim = shape(op.lhs), shape(op.rhs), op.dim.data
    need(
        len(a) == len(b) and 0 <= dim < len(a),
        f"dimension {dim} is none of both {spell(op.lhs.type)} and {spell(op.rhs.type)}",
    )
    apart = [d for d in range(len(a)) if d != dim and a[d] != b[d]]
    need(not apart, f"{spell(op.lhs.type)} and {spell(op.rhs.type)} differ beside dimension {dim}")
    wanted = TileType([n + b[d] if d == dim else n for d, n in enumerate(a)], element(op.lhs))
    need(op.results[0].type == wanted, f"gives {spell(wanted)}, not {spell(op.results[0].type)}")
    check_tile(wanted)


@rule("extract")
def _extract(op: Any) -> None:
    a, b = shape(op.operands[0]), shape(op.results[0])
    need(element(op.operands[0]) == element(op.results[0]), "element types differ")
    fits = len(a) == len(b) and all(m % n == 0 for m, n in zip(a, b, strict=False))
    need(fits, f"{spell(op.results[0].type)} does not divide {spell(op.operands[0].type)} evenly")
    need(len(op.indices) == len(a), f"{len(op.indices)} indices for {len(a)} dimensions")
    for index in op.indices:
        need(index.type == TileType((), t.i32), f"an index must be tile<i32>, not {spell(index.type)}")


@rule("reduce", "scan")
def _combine(op: Any) -> None:
    need(len(op.inputs) > 0, "needs at least one tile")
    for value in op.inputs:
        same_shape(op.inputs[0], value)
    dim, sizes = op.dim.data, shape(op.inputs[0])
    need(0 <= dim < len(sizes), f"dim={dim} is no dimension of {spell(op.inputs[0].type)}")
    kept = sizes if op.name.endswith("scan") else sizes[:dim] + sizes[dim + 1 :]
    wanted = [TileType(kept, element(v)) for v in op.inputs]
    found = [r.type for r in op.results]
    need(found == wanted, f"gives ({', '.join(map(spell, wanted))}), not ({', '.join(map(spell, found))})")
    numbers = op.identities.data
    need(len(numbers) == len(op.inputs), f"{len(numbers)} identities for {len(op.inputs)} tiles")
    for number, value in zip(numbers, op.inputs, strict=True):
        need(number.type == element(value), f"an identity of {spell(number.type)} for {spell(value.type)}")
    scalars = [TileType((), element(v)) for v in op.inputs for _ in range(2)]
    arguments = [a.type for a in op.body.block.args]
    need(arguments == scalars, f"the region takes ({', '.join(map(spell, arguments))}), not two scalars per tile")


# Control


@rule("for")
def _for(op: Any) -> None:
    same("bounds and step", op.lowerBound, op.upperBound, op.step)
    scalar_integer(op.lowerBound, "a bound")
    _carried(op, [op.lowerBound.type])


@rule("loop")
def _loop(op: Any) -> None:
    _carried(op, [])


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
    need(len(op.then_region.blocks) == 1, "needs one block for the case that the condition holds")
    need(len(op.else_region.blocks) <= 1, "else has more than one block")
    need(not op.results or bool(op.else_region.blocks), "gives results, so it needs an else that yields them")


@rule("assert")
def _assert(op: Any) -> None:
    of(op.operands[0], (t.i1,), "i1")


@rule("print_tko")
def _print(op: Any) -> None:
    conversions = op.str.data.replace("%%", "").count("%")
    need(conversions == len(op.args), f"{conversions} conversions in the text for {len(op.args)} values")


@rule("assume")
def _assume(op: Any) -> None:
    same("operand and result types", op.value, op.results[0])
    kind, predicate = op.value.type, op.predicate
    is_tile = isinstance(kind, TileType)
    if isinstance(predicate, DivByAttr):
        d = predicate.divisor
        need(d > 0 and d & (d - 1) == 0, f"div_by<{d}>: the divisor must be a power of two")
        need((is_tile and element(op.value) not in t.FLOATS) or isinstance(kind, t.TensorViewType),
             f"div_by is for integers, pointers and tensor views, not {spell(kind)}")  # fmt: skip
        need((predicate.every is None) == (predicate.along is None), "`every` and `along` go together")
        if predicate.along is not None:
            need(is_tile and 0 <= predicate.along < len(shape(op.value)), f"along {predicate.along}: no such dimension")
        return
    need(is_tile, f"{spell(kind)} is no tile")
    if isinstance(predicate, BoundedAttr):
        integers(op.value)
        ordered = predicate.lb is None or predicate.ub is None or predicate.lb <= predicate.ub
        need(ordered, f"bounded<{predicate.lb}, {predicate.ub}>: nothing lies within")
    else:
        need(
            len(predicate.data) == len(shape(op.value)),
            f"same_elements of {len(predicate.data)} sizes for {spell(kind)}",
        )
