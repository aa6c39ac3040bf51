"""Every element-wise operation of Tile IR, by dtype and mode, each as a module of one entry.

What `verify` accepts is a case, so a new dtype or mode is found here by itself. A case loads its operands, applies the
operation once to each element, and stores the result. What has no bits in memory of its own is left out: i1 is read
from and written as i8, and tiles of 4 bits are not covered.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolchain.errors import SourceError
from toolchain.tileir.dialect.control import ModuleOp
from toolchain.tileir.dialect.verify import verify
from toolchain.tileir.text import parse

TILE, BLOCKS = 4096, 16  # elements of a block, and blocks: all pairs of 8 bits, and all values of 16
COUNT = TILE * BLOCKS

FLOATS = ("f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2")
INTEGERS = ("i64", "i32", "i16", "i8")
ROUNDINGS = ("", "zero", "negative_inf", "positive_inf", "approx", "full")
FLAGS = ("", "flush_to_zero", "propagate_nan")
PREDICATES = ("equal", "not_equal", "less_than", "less_than_or_equal", "greater_than", "greater_than_or_equal")
SIGNS = ("signed", "unsigned")

UNARY_FLOAT = (
    "absf", "ceil", "cos", "cosh", "exp", "exp2", "floor", "log", "log2", "negf", "rsqrt", "sin", "sinh", "sqrt", "tan",
    "tanh",
)  # fmt: skip
BINARY_FLOAT = ("addf", "subf", "mulf", "divf", "maxf", "minf", "remf", "pow", "atan2")


@dataclass(frozen=True)
class Case:
    """An operation on elements. `operands`: their dtypes, and `result`, as Tile IR spells them. `text`: the operation
    on %0, %1 and %2. `name`: the text without what every case has."""

    op: str
    mode: str
    operands: tuple[str, ...]
    result: str
    text: str

    @property
    def name(self) -> str:
        dtypes = [*dict.fromkeys((*self.operands, self.result))]
        return " ".join(filter(None, (self.op, self.mode, "->".join(dtypes))))

    @functools.cached_property
    def module(self) -> ModuleOp:
        """Verified. Raises SourceError if there is no such operation."""
        made = parse(_module(self), filename=self.name)
        verify(made, filename=self.name)
        return made


def cases() -> list[Case]:
    """All of them. It takes some seconds."""
    found: list[Case] = []
    for case in candidates().values():
        try:
            _ = case.module
        except SourceError:  # no operation of this dtype or mode
            continue
        found.append(case)
    return found


@functools.cache
def candidates() -> dict[str, Case]:
    """What might be a case, by name."""
    found: dict[str, Case] = {}
    for case in _candidates():
        found.setdefault(case.name, case)
    return found


def _candidates() -> Iterator[Case]:
    for op, dtype, rounding, flag in itertools.product(UNARY_FLOAT, FLOATS, ROUNDINGS, FLAGS):
        yield _same(op, dtype, 1, rounding, flag)
    for op, dtype, rounding, flag in itertools.product(BINARY_FLOAT, FLOATS, ROUNDINGS, FLAGS):
        yield _same(op, dtype, 2, rounding, flag)
    for dtype, rounding, flag in itertools.product(FLOATS, ROUNDINGS, FLAGS):
        yield _same("fma", dtype, 3, rounding, flag)
    for dtype, predicate, order in itertools.product(FLOATS, PREDICATES, ("ordered", "unordered")):
        tile = _tile(dtype)
        text = f"cmpf {predicate} {order} %0, %1 : {tile} -> {_tile('i1')}"
        yield Case("cmpf", f"{predicate} {order}", (dtype, dtype), "i1", text)
    yield from _integers()
    yield from _conversions()


def _integers() -> Iterator[Case]:
    for dtype in INTEGERS:
        tile = _tile(dtype)
        for op in ("absi", "negi"):
            yield Case(op, "", (dtype,), dtype, f"{op} %0 : {tile}")
        for op in ("addi", "subi", "muli", "andi", "ori", "xori", "shli", "mulhii"):
            yield Case(op, "", (dtype, dtype), dtype, f"{op} %0, %1 : {tile}")
        for op, sign in itertools.product(("shri", "remi", "maxi", "mini"), SIGNS):
            yield Case(op, sign, (dtype, dtype), dtype, f"{op} %0, %1 {sign} : {tile}")
        for sign, rounding in itertools.product(SIGNS, ("", "negative_inf", "positive_inf")):
            text = f"divi %0, %1 {sign}{_rounding(rounding)} : {tile}"
            yield Case("divi", f"{sign}{_rounding(rounding)}", (dtype, dtype), dtype, text)
        for predicate, sign in itertools.product(PREDICATES, SIGNS):
            text = f"cmpi {predicate} %0, %1, {sign} : {tile} -> {_tile('i1')}"
            yield Case("cmpi", f"{predicate} {sign}", (dtype, dtype), "i1", text)


def _conversions() -> Iterator[Case]:
    for one, other, rounding in itertools.product(FLOATS, FLOATS, ROUNDINGS):
        yield Case("ftof", _rounding(rounding).strip(), (one,), other,
                   f"ftof %0{_rounding(rounding)} : {_tile(one)} -> {_tile(other)}")  # fmt: skip
    for one, other, sign in itertools.product(FLOATS, INTEGERS, SIGNS):
        yield Case("ftoi", sign, (one,), other, f"ftoi %0 {sign} : {_tile(one)} -> {_tile(other)}")
        yield Case("itof", sign, (other,), one, f"itof %0 {sign} : {_tile(other)} -> {_tile(one)}")
    for one in FLOATS:
        yield Case("ftoi", "unsigned", (one,), "i1", f"ftoi %0 unsigned : {_tile(one)} -> {_tile('i1')}")
    for one, other, sign in itertools.product(INTEGERS, INTEGERS, SIGNS):
        yield Case("exti", sign, (one,), other, f"exti %0 {sign} : {_tile(one)} -> {_tile(other)}")
        yield Case("trunci", "", (one,), other, f"trunci %0 : {_tile(one)} -> {_tile(other)}")
    for one, other in itertools.product((*FLOATS, *INTEGERS), repeat=2):
        if one != other:
            yield Case("bitcast", "", (one,), other, f"bitcast %0 : {_tile(one)} -> {_tile(other)}")


def _same(op: str, dtype: str, count: int, rounding: str, flag: str) -> Case:
    """An operation whose operands and result have one type."""
    operands = ", ".join(f"%{number}" for number in range(count))
    mode = f"{_rounding(rounding)} {flag}".strip()
    return Case(op, mode, (dtype,) * count, dtype, " ".join(f"{op} {operands} {mode} : {_tile(dtype)}".split()))


def _rounding(mode: str) -> str:
    return f" rounding<{mode}>" if mode else ""


def _tile(dtype: str) -> str:
    return f"tile<{TILE}x{dtype}>"


def _module(case: Case) -> str:
    stored = "i8" if case.result == "i1" else case.result
    pointers = [*case.operands, stored]
    names = [*(f"p{number}" for number in range(len(case.operands))), "out"]
    lines = [
        "%bx, %by, %bz = get_tile_block_id : tile<i32>", f"%size = constant <i32: {TILE}> : tile<i32>",
        "%start = muli %bx, %size : tile<i32>", *_spread("starts", "start", "i32"), f"%i = iota : {_tile('i32')}",
        f"%at = addi %i, %starts : {_tile('i32')}",
    ]  # fmt: skip
    for name, dtype in zip(names, pointers, strict=True):
        lines += _spread(f"{name}_all", name, f"ptr<{dtype}>")
        lines.append(f"%{name}_at = offset %{name}_all, %at : {_places(dtype)}, {_tile('i32')} -> {_places(dtype)}")
    for number, dtype in enumerate(case.operands):
        lines.append(
            f"%{number}, %t{number} = load_ptr_tko weak %p{number}_at : {_places(dtype)} -> {_tile(dtype)}, token"
        )
    lines.append(f"%r = {case.text}")
    if case.result == "i1":
        lines.append(f"%bits = exti %r unsigned : {_tile('i1')} -> {_tile('i8')}")
    value = "%bits" if case.result == "i1" else "%r"
    lines.append(f"%t = store_ptr_tko weak %out_at, {value} : {_places(stored)}, {_tile(stored)} -> token")
    parameters = ", ".join(f"%{name}: tile<ptr<{dtype}>>" for name, dtype in zip(names, pointers, strict=True))
    body = "\n    ".join([*lines, "return"])
    return f"cuda_tile.module @m {{\n  entry @k({parameters}) {{\n    {body}\n  }}\n}}\n"


def _spread(name: str, scalar: str, element: str) -> Sequence[str]:
    """A scalar in every element of a tile."""
    return (
        f"%{name}_1 = reshape %{scalar} : tile<{element}> -> tile<1x{element}>",
        f"%{name} = broadcast %{name}_1 : tile<1x{element}> -> tile<{TILE}x{element}>",
    )


def _places(dtype: str) -> str:
    return f"tile<{TILE}xptr<{dtype}>>"
