"""Instructions of PTX from registers to registers, thread by thread: the types of the operands, and what is computed.

The functions are those of the executor's operations (program/elementwise.py). Source: PTX ISA 9.0, each instruction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import arith, math

from ..instructions.exchange import halves, permuted
from ..program.elementwise import BINARY, UNARY, Function, fma
from ..state.block import Array

DTYPES: dict[str, Any] = {
    "pred": np.bool_, "b8": np.int8, "s8": np.int8, "u8": np.int8, "b16": np.int16, "s16": np.int16, "u16": np.int16,
    "b32": np.int32, "s32": np.int32, "u32": np.int32, "b64": np.int64, "s64": np.int64, "u64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
FLOATS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class Scalar:
    """`takes`: the types of the operands; `gives`: that of the result. `divides`: by the second operand, which must not
    be 0."""

    takes: tuple[str, ...]
    gives: str
    function: Function
    divides: bool = False


def _unsigned(value: Array) -> Any:
    return value.view(f"u{value.dtype.itemsize}")


def _wide(value: Array, *, signed: bool) -> Any:
    """The value with twice as many bits."""
    bits = 16 * value.dtype.itemsize
    return value.astype(f"i{bits // 8}") if signed else _unsigned(value).astype(f"u{bits // 8}")


def _product(type_: str, part: str) -> Function:
    signed, bits = type_[0] == "s", int(type_[1:])

    def made(a: Array, b: Array) -> Array:
        whole = _wide(a, signed=signed) * _wide(b, signed=signed)
        if part == "wide":
            return whole.view(f"i{bits // 4}")
        return (whole >> whole.dtype.type(bits)).astype(f"i{bits // 8}")

    return made


def _shift(word: str, type_: str) -> Function:
    """A count beyond the value's bits is taken as them."""
    bits = int(type_[1:])

    def made(a: Array, b: Array) -> Array:
        count = np.minimum(_unsigned(b).astype(np.uint64), bits)
        near = np.minimum(count, bits - 1)
        if word == "shr" and type_[0] == "s":
            return a >> near.astype(a.dtype)
        wide = _unsigned(a)
        moved = wide << near.astype(wide.dtype) if word == "shl" else wide >> near.astype(wide.dtype)
        return np.where(count >= bits, wide.dtype.type(0), moved).view(a.dtype)

    return made


def _extract(type_: str) -> Function:
    """`bfe`: so many bits from a place on."""
    bits, signed = int(type_[1:]), type_[0] == "s"

    def made(a: Array, place: Array, count: Array) -> Array:
        start, length = place & 255, np.minimum(count & 255, bits)
        if signed:
            left = np.clip(bits - start - length, 0, bits - 1).astype(a.dtype)
            return np.where(length == 0, a.dtype.type(0), (a << left) >> (bits - length).astype(a.dtype))
        moved = _shift("shr", type_)(a, start.astype(np.int32))
        mask = _shift("shl", type_)(np.full_like(a, -1), length.astype(np.int32))
        return moved & ~mask

    return made


def _selected(a: Array, b: Array, c: Array) -> Array:
    return np.where(c, a, b)


def _added(product: Function) -> Function:
    """A product and a third operand."""

    def made(a: Array, b: Array, c: Array) -> Array:
        return product(a, b) + c

    return made


def _of_unsigned(test: Callable[[Any, Any], Any]) -> Function:
    def made(a: Array, b: Array) -> Array:
        return test(_unsigned(a), _unsigned(b))

    return made


def _nan(*, without: bool) -> Function:
    def made(a: Array, b: Array) -> Array:
        return (np.isnan(a) | np.isnan(b)) ^ without

    return made


COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_COMBINED: dict[str, Callable[[Any, Any], Any]] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _test(name: str, type_: str) -> Function | None:
    if type_ not in FLOATS:
        if (test := COMPARED.get(name)) is None:
            return None
        unsigned = type_[0] == "u" or name in ("lo", "ls", "hi", "hs")
        return _of_unsigned(test) if unsigned else test
    unordered = name in ("equ", "neu", "ltu", "leu", "gtu", "geu")
    test = COMPARED.get(name[:-1] if unordered else name)
    if name in ("num", "nan"):
        return _nan(without=name == "num")
    if test is None or name in ("lo", "ls", "hi", "hs"):
        return None

    def made(a: Array, b: Array) -> Array:
        nan = np.isnan(a) | np.isnan(b)
        return (test(a, b) & ~nan) | nan if unordered else test(a, b) & ~nan

    return made


def _setp(words: Sequence[str]) -> Scalar | None:
    """`setp.lt.s32`, or `setp.lt.and.s32` with a predicate more."""
    type_, modes = words[-1], [word for word in words[1:-1] if word != "ftz"]
    if type_ not in DTYPES or (test := _test(modes[0], type_)) is None or len(modes) > 2:
        return None
    if len(modes) == 1:
        return Scalar((type_, type_), "pred", test)
    if (combined := _COMBINED.get(modes[1])) is None:
        return None

    def both(a: Array, b: Array, c: Array) -> Array:
        return combined(test(a, b), c)

    return Scalar((type_, type_, "pred"), "pred", both)


def _cast(wide: Any, dtype: Any, *, unsigned: bool) -> Function:
    """A value as another type, whose bits are then taken as they are."""

    def made(a: Array) -> Array:
        return (_unsigned(a) if unsigned else a).astype(wide).view(dtype)

    return made


_ROUNDED: dict[str, Callable[[Any], Any]] = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}


def _cvt(words: Sequence[str]) -> Scalar | None:
    """Between integers bits go or come; a float becomes the nearest, or an integer within the bounds of its type."""
    to, of = words[-2:]
    modes = set(words[1:-2])
    if words[:3] == ["cvt", "rn", "f16x2"] and of in ("e4m3x2", "e5m2x2"):
        return Scalar(("b16",), "b32", functools.partial(halves, atom=of[:4]))
    if to not in DTYPES or of not in DTYPES or "pred" in (to, of):
        return None
    dtype, unsigned = DTYPES[to], of[0] == "u"
    if to in FLOATS and modes <= {"rn", "ftz"} and "ftz" not in modes:
        return Scalar((of,), to, _cast(dtype, dtype, unsigned=unsigned))
    if to not in FLOATS and of not in FLOATS and not modes:
        wide = f"{to[0] if to[0] == 'u' else 'i'}{int(to[1:]) // 8}"
        return Scalar((of,), to, _cast(wide, dtype, unsigned=unsigned))
    if to not in FLOATS and of in FLOATS and (rounded := _ROUNDED.get("".join(modes))) is not None:
        wide = np.dtype(f"{to[0] if to[0] == 'u' else 'i'}{int(to[1:]) // 8}")
        bounds = np.iinfo(wide)

        def made(a: Array) -> Array:
            value = rounded(a.astype(np.float64))
            low, high = value <= float(bounds.min), value >= float(bounds.max)
            inside = np.where(low | high | np.isnan(value), 0, value).astype(wide)
            return np.where(low, wide.type(bounds.min), np.where(high, wide.type(bounds.max), inside)).view(dtype)

        return Scalar((of,), to, made)
    return None


_OF_BITS: dict[str, Any] = {"and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp}
_OF_INTEGERS: dict[str, tuple[Any, Any]] = {
    "add": (arith.AddiOp, arith.AddiOp), "sub": (arith.SubiOp, arith.SubiOp), "div": (arith.DivSIOp, arith.DivUIOp),
    "rem": (arith.RemSIOp, arith.RemUIOp), "min": (arith.MinSIOp, arith.MinUIOp), "max": (arith.MaxSIOp, arith.MaxUIOp),
}  # fmt: skip
_OF_FLOATS: dict[str, Any] = {
    "add.rn": arith.AddfOp, "add": arith.AddfOp, "sub.rn": arith.SubfOp, "sub": arith.SubfOp, "mul.rn": arith.MulfOp,
    "mul": arith.MulfOp, "div.rn": arith.DivfOp, "min": arith.MinnumfOp, "max": arith.MaxnumfOp,
    "min.NaN": arith.MinimumfOp, "max.NaN": arith.MaximumfOp,
}  # fmt: skip


@functools.cache
def scalar(opcode: str) -> Scalar | None:
    """What an instruction computes, or None if it is none of these."""
    words = opcode.split(".")
    base, type_, form = words[0], words[-1], ".".join(words[:-1])
    if base == "setp":
        return _setp(words)
    if base == "cvt":
        return _cvt(words) if len(words) > 2 else None
    if type_ not in DTYPES:
        return None
    if type_ in FLOATS:
        return _of_floats(form, type_)
    if form == "selp":
        return Scalar((type_, type_, "pred"), type_, _selected)
    if opcode == "prmt.b32":
        return Scalar(("b32", "b32", "b32"), "b32", permuted)
    two, three = (type_, type_), (type_, type_, type_)
    if form in _OF_BITS:
        return Scalar(two, type_, BINARY[_OF_BITS[form]])
    if form == "not":
        return Scalar((type_,), type_, np.invert)
    if form in ("shl", "shr"):
        return Scalar((type_, "u32"), type_, _shift(form, type_))
    if type_[0] == "b" or type_ == "pred":
        return None
    if form in _OF_INTEGERS:
        return Scalar(two, type_, BINARY[_OF_INTEGERS[form][type_[0] == "u"]], form in ("div", "rem"))
    if form in ("neg", "abs") and type_[0] == "s":
        return Scalar((type_,), type_, np.negative if form == "neg" else np.abs)
    if form in ("mul.wide", "mul.hi") and type_[1:] in ("16", "32"):
        gives = f"{type_[0]}{2 * int(type_[1:])}" if form == "mul.wide" else type_
        return Scalar(two, gives, _product(type_, form[4:]))
    if form == "mul.lo":
        return Scalar(two, type_, BINARY[arith.MuliOp])
    if form == "mad.lo":
        return Scalar(three, type_, _added(BINARY[arith.MuliOp]))
    if form == "mad.wide" and type_[1:] in ("16", "32"):
        gives = f"{type_[0]}{2 * int(type_[1:])}"
        return Scalar((*two, gives), gives, _added(_product(type_, "wide")))
    if form == "bfe":
        return Scalar((type_, "u32", "u32"), type_, _extract(type_))
    return None


def _of_floats(form: str, type_: str) -> Scalar | None:
    two = (type_, type_)
    if form in _OF_FLOATS:
        return Scalar(two, type_, BINARY[_OF_FLOATS[form]])
    if form == "selp":
        return Scalar((*two, "pred"), type_, _selected)
    if form == "fma.rn" and type_ != "f64":
        return Scalar((*two, type_), type_, fma)
    unary = {"neg": UNARY[arith.NegfOp], "abs": UNARY[math.AbsFOp], "sqrt.rn": UNARY[math.SqrtOp],
             "rcp.rn": np.reciprocal}  # fmt: skip
    return Scalar((type_,), type_, unary[form]) if form in unary else None
