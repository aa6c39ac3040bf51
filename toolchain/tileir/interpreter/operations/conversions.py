"""Conversions between element types, and reinterpretations of bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolchain.errors import UsageError

from ..analysis.fields import enum, flag, tile_of
from ..analysis.nans import carries, keeps
from ..memory.memory import Trap
from ..memory.scattered import scalar
from ..numbers.elements import Array, Element, sign_extended
from ..numbers.rounding import beyond, directed_rounder, holds, integer_rounder, power_of_two, saturating
from .codegen import Emitter, lowering
from .integers import unsigned, wrap

Convert = Callable[[Any], Any]


def _emit(emitter: Emitter, op: Any, convert: Convert | None) -> None:
    name = emitter.ref(op.operands[0])
    if convert is None:  # the same values
        emitter.name(op.results[0], name)
    else:
        emitter.let(op.results[0], f"{emitter.bind(convert)}({name})")


@lowering("ftof")
def _float_to_float(emitter: Emitter, op: Any) -> None:
    source, target = tile_of(op.operands[0]).element, tile_of(op.results[0]).element
    mode, name = enum(op, "rounding_mode"), emitter.ref(op.operands[0])
    if keeps(source, target):
        emitter.name(op.results[0], name)
        return
    convert = float_to_float(source, target, mode)
    expression = name if convert is None else f"{emitter.bind(convert)}({name})"
    if carries(source, target, mode):
        emitter.let(op.results[0], expression)
    else:
        emitter.let_float(op.results[0], expression, rounds=False)


def float_to_float(source: Element, target: Element, mode: str) -> Convert | None:
    """The conversion, or None if the compute representation stays the same. A conversion to 8 bits saturates, also for
    infinities, because GPUs have no other."""
    if target.name == "f8E8M0FNU":
        if mode not in ("zero", "positive_inf"):
            raise UsageError(f"a conversion to {target.name} cannot round by {mode}", hint="use zero or positive_inf")
        return power_of_two(mode)
    if target.bits <= 8:
        return saturating(target, mode)
    if mode != "nearest_even":
        return directed_rounder(target, mode)
    if target.round is not None:
        # From f64 to a narrow type there must be only one rounding.
        return directed_rounder(target, mode) if source.name == "f64" else target.round
    if source.compute == target.compute:
        return None
    dtype = target.compute

    def cast(x: Any) -> Any:
        return x.astype(dtype)

    return cast


@lowering("itof")
def _int_to_float(emitter: Emitter, op: Any) -> None:
    source, target = tile_of(op.operands[0]).element, tile_of(op.results[0]).element
    signed = enum(op, "signedness") == "signed"
    _emit(emitter, op, int_to_float(source, target, signed, enum(op, "rounding_mode")))


def int_to_float(source: Element, target: Element, signed: bool, mode: str) -> Convert:
    if target.name == "f8E8M0FNU":
        raise UsageError(f"integers cannot be converted to {target.name}", hint="convert to another float type first")
    exact = holds(target, source.bits - signed) or (mode == "nearest_even" and target.round is None)
    rounder = saturating if target.bits <= 8 else directed_rounder
    narrow = None if exact else rounder(target, mode)
    dtype = np.dtype(np.int64) if source.bits < 64 or signed else np.dtype(np.uint64)

    def convert(x: Any) -> Any:
        if source.bits == 1:
            values = np.asarray(x, np.int64) * (-1 if signed else 1)
        else:
            values = np.asarray(x if signed else unsigned(x, source), dtype)
        if narrow is None:
            return values.astype(target.compute)[()]
        wide = values.astype(np.float64)
        if source.bits < 64:
            return narrow(wide)
        # f64 cannot hold a large i64 exactly; the lost part still decides a directed rounding or a tie.
        low = (values & np.array(0x7FF, values.dtype)).astype(np.float64)
        high = (values - (values & np.array(0x7FF, values.dtype))).astype(np.float64)
        return narrow(wide, (high - wide) + low)

    return convert


@lowering("ftoi")
def _float_to_int(emitter: Emitter, op: Any) -> None:
    source, target = tile_of(op.operands[0]).element, tile_of(op.results[0]).element
    signed, mode, saturates = enum(op, "signedness") == "signed", enum(op, "rounding_mode"), flag(op, "saturating")
    convert = integer_rounder(target, signed, mode, source, saturates)
    arguments = emitter.ref(op.operands[0])
    if emitter.sanitize and not saturates and target.bits > 1:
        check, fits = emitter.bind(_fits(target, signed, mode), "check_fits"), emitter.fresh()
        emitter.line(f"{fits} = {check}({arguments}, {emitter.poison_of((op.operands[0],))})")
        arguments += f", {fits}"
    expression = f"{emitter.bind(convert)}({arguments})"
    if emitter.scalar(op.results[0]):
        expression = f"{emitter.bind(scalar)}({expression}, {emitter.bind(target)})"
    emitter.let(op.results[0], expression)


def _fits(element: Element, signed: bool, mode: str) -> Callable[[Any, Any], bool]:
    """A check that each float is an integer of `element` once it is rounded. False if that is not known of those that
    are poisoned."""
    outside = beyond(element, signed, mode)
    kind = f"{'a signed' if signed else 'an unsigned'} {element.name}"

    def check(x: Any, poison: Any) -> bool:
        bad = outside(x)
        if bad is None:
            return True
        if poison is not None:
            bad = bad & ~np.asarray(poison, np.bool_)
        if bad.any():
            raise Trap(f"{np.broadcast_to(x, bad.shape)[bad][0]:g} converted to {kind}, which cannot hold it")
        return False

    return check


@lowering("exti")
def _extend(emitter: Emitter, op: Any) -> None:
    source, target = tile_of(op.operands[0]).element, tile_of(op.results[0]).element
    signed = enum(op, "signedness") == "signed"
    name = emitter.ref(op.operands[0])
    if emitter.scalar(op.results[0]):
        if source.bits == 1:
            emitter.let(op.results[0], f"-int({name})" if signed else f"int({name})")
        else:
            emitter.let(op.results[0], name if signed else f"{name} & {(1 << source.bits) - 1}")
        return

    def extend(x: Array) -> Array:
        if source.bits == 1:
            wide = x.astype(target.compute)
            return -wide if signed else wide
        return (x if signed else unsigned(x, source)).astype(target.compute)

    _emit(emitter, op, extend)


@lowering("trunci")
def _truncate(emitter: Emitter, op: Any) -> None:
    source, target = tile_of(op.operands[0]).element, tile_of(op.results[0]).element
    flags = enum(op, "overflow")
    if emitter.sanitize and flags != "none":
        check = emitter.bind(_truncation_check(source, target, flags))
        emitter.line(f"{check}({emitter.ref(op.operands[0])}, {emitter.poison_of((op.operands[0],))})")
    if emitter.scalar(op.results[0]):
        name = emitter.ref(op.operands[0])
        if target.bits == 1:
            emitter.let(op.results[0], f"({name} & 1) == 1")
        else:
            emitter.let(op.results[0], f"{emitter.bind(wrap)}({name}, {target.bits})")
        return

    def truncate(x: Array) -> Array:
        if target.bits == 1:
            return (x & 1) != 0
        return sign_extended(x.astype(np.int8)) if target.bits == 4 else x.astype(target.compute)

    _emit(emitter, op, truncate)


def _truncation_check(source: Element, target: Element, flags: str) -> Callable[[Any, Any], None]:
    low, high = (-1, 0) if target.bits == 1 else (target.low, target.high)

    def check(x: Any, poison: Any) -> None:
        bits = unsigned(x, source)
        signed = (x < low) | (x > high) if flags in ("no_signed_wrap", "no_wrap") else False
        wide = bits > (1 << target.bits) - 1 if flags in ("no_unsigned_wrap", "no_wrap") else False
        bad = np.logical_or(signed, wide)
        if bad.any() and (poison is None or np.logical_and(bad, np.logical_not(poison)).any()):
            raise Trap(f"a {flags} trunci to {target.name} loses bits")

    return check


def reinterpret(source: Element, target: Element) -> Convert:
    """The same bits as another element type of the same width."""

    def cast(x: Any) -> Any:
        stored = np.ascontiguousarray(source.encode(np.asarray(x, source.compute)))
        result = target.decode(stored.view(target.storage).reshape(np.shape(x)))
        return result if result.ndim else scalar(result[()], target)

    return cast


@lowering("bitcast")
def _bitcast(emitter: Emitter, op: Any) -> None:
    source, target = tile_of(op.operands[0]).element, tile_of(op.results[0]).element
    _emit(emitter, op, None if source == target else reinterpret(source, target))


@lowering("pack", "unpack", poison="own")
def _pack(emitter: Emitter, op: Any) -> None:
    """Packs a rank-1 tile into the bytes that it would have in memory, and unpacks it again. Of elements that share a
    byte the first has the lowest bits."""
    source, target = tile_of(op.operands[0]), tile_of(op.results[0])
    few = min(source.element.bits, target.element.bits)

    def repack(x: Array) -> Array:
        stored = np.ascontiguousarray(np.broadcast_to(source.element.encode(x), source.shape))
        if few < 8:
            stored = (_share if source.element.bits < 8 else _apart)(stored.view(np.uint8), few)
        return target.element.decode(stored.view(target.element.storage))

    emitter.forbid_poison((op.operands[0],), "a packed element")
    _emit(emitter, op, repack)


def _share(stored: Array, bits: int) -> Array:
    """Elements of fewer than 8 bits, one a byte, put together into bytes."""
    return np.packbits(stored[:, None] >> np.arange(bits, dtype=np.uint8) & 1, bitorder="little")


def _apart(stored: Array, bits: int) -> Array:
    """The elements that share bytes, one a byte."""
    parts = np.unpackbits(stored, bitorder="little").reshape(-1, bits)
    return (parts << np.arange(bits, dtype=np.uint8)).sum(axis=1, dtype=np.uint8)


@lowering("ptr_to_ptr")
def _pointer_cast(emitter: Emitter, op: Any) -> None:
    _emit(emitter, op, None)


@lowering("int_to_ptr")
def _int_to_pointer(emitter: Emitter, op: Any) -> None:
    emitter.let(op.results[0], f"space.from_program({emitter.ref(op.operands[0])})")


@lowering("ptr_to_int")
def _pointer_to_int(emitter: Emitter, op: Any) -> None:
    emitter.let(op.results[0], f"space.to_program({emitter.ref(op.operands[0])})")
