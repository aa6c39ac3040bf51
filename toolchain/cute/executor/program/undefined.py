"""Operands for which an operation has no result: a division by zero, a shift beyond the width, a broken promise.

LLVM compiles such an operation to anything. So it is an error in an active thread, also if nobody uses the result.
Source: LLVM Language Reference, "Binary Operations", "fptosi", "Poison Values"; MLIR's `arith` says the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Operation, SSAValue

from ...nvvm.location import place
from ..state.block import WARP, Array, Warp
from ..state.findings import NoSemantics, Undefined
from .values import constant, kind_of

# From the operands: in which threads there is no result, and what to say, with an operand as {0} or {1}.
Test = Callable[..., tuple[Array, str]]
Check = Callable[[Warp, Sequence[Array]], None]

SIGNED_DIVISIONS = (arith.DivSIOp, arith.RemSIOp, llvm.SDivOp, llvm.SRemOp)
UNSIGNED_DIVISIONS = (arith.DivUIOp, arith.RemUIOp, llvm.UDivOp, llvm.URemOp)
SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp, llvm.ShlOp, llvm.LShrOp, llvm.AShrOp)
TO_INTEGER = (arith.FPToSIOp, arith.FPToUIOp)
EXACT: dict[type[Operation], Callable[[Any, Any], Any]] = {
    arith.AddiOp: operator.add, arith.SubiOp: operator.sub, arith.MuliOp: operator.mul, arith.ShLIOp: operator.lshift,
    llvm.AddOp: operator.add, llvm.SubOp: operator.sub, llvm.MulOp: operator.mul, llvm.ShlOp: operator.lshift,
}  # fmt: skip


def as_unsigned(value: Array) -> Array:
    """The same bits as a number without a sign."""
    return value if value.dtype == np.bool_ else value.view(f"u{value.dtype.itemsize}")


def _signed_division(a: Array, b: Array) -> tuple[Array, str]:
    lowest = np.iinfo(a.dtype).min
    return (b == 0) | ((a == lowest) & (b == -1)), f"{{0}} / {{1}} has no result in {8 * a.itemsize} bits"


def _unsigned_division(a: Array, b: Array) -> tuple[Array, str]:
    return b == 0, f"{{0}} / {{1}} has no result in {8 * a.itemsize} bits"


def _shift(a: Array, b: Array) -> tuple[Array, str]:
    bits = 8 * a.itemsize
    return as_unsigned(b) >= bits, f"a shift of {{0}} by {{1}} bits: the value has {bits}"


def _to_integer(op: Operation) -> Test:
    bits, whole = 8 * kind_of(op.results[0].type).dtype.itemsize, isinstance(op, arith.FPToUIOp)
    low, end = (0.0, 2.0**bits) if whole else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
    kind = f"an {'unsigned ' if whole else ''}integer of {bits} bits"

    def test(a: Array) -> tuple[Array, str]:
        value = np.trunc(a.astype(np.float64))
        return ~((value >= low) & (value < end)), f"{{0}} does not fit into {kind}"  # nor does NaN

    return test


def _no_wrap(op: Operation, *, sign: bool) -> Test:
    exact, name = EXACT[type(op)], "nsw" if sign else "nuw"

    def test(a: Array, b: Array) -> tuple[Array, str]:
        numbers = (a, b) if sign else (as_unsigned(a), as_unsigned(b))
        bounds = np.iinfo(numbers[0].dtype)
        made = exact(*(value.astype(object) for value in numbers))
        wrong = ((made < int(bounds.min)) | (made > int(bounds.max))).astype(np.bool_)
        return wrong, f"{{0}} and {{1}} overflow {bounds.bits} bits, which {name} denies"

    return test


def _wrap_flags(op: Operation) -> list[bool]:
    """True for `nsw`, False for `nuw`, of those that an operation promises."""
    match op.properties.get("overflowFlags"):
        case arith.IntegerOverflowAttr() as flags:
            return [flag is arith.IntegerOverflowFlag.NSW for flag in flags.data]
        case IntegerAttr() as bits:
            return [sign for sign, bit in ((True, 1), (False, 2)) if bits.value.data & bit]
        case _:
            return []


def conditions_of(op: Operation) -> list[Test]:
    """What to ask of the operands of an operation. Constants that are fine are not asked about."""
    kind, last = type(op), _known(op.operands[-1]) if op.operands else None
    if kind in SIGNED_DIVISIONS:
        return [] if last is not None and (last != 0).all() and (last != -1).all() else [_signed_division]
    if kind in UNSIGNED_DIVISIONS:
        return [] if last is not None and (last != 0).all() else [_unsigned_division]
    if kind in TO_INTEGER:
        return [_to_integer(op)]
    flags = _wrap_flags(op) if kind in EXACT else []
    if flags and op.results[0].type == i1:
        raise NoSemantics(f"{place(op)}the executor has no {op.name} of i1 that denies overflow")
    found: list[Test] = [_no_wrap(op, sign=sign) for sign in flags]
    if kind in SHIFTS and not (last is not None and not _shift(last, last)[0].any()):
        found.insert(0, _shift)
    return found


def _known(value: SSAValue) -> Array | None:
    if isinstance(op := value.owner, arith.ConstantOp | llvm.ConstantOp):
        return constant(op.value, value.type)
    return None


def check_of(op: Operation) -> Check | None:
    """Raises Undefined in a warp whose active threads give an operation operands without a result; or nothing to do."""
    tests = conditions_of(op)
    return partial(_check, tests, type(op) in UNSIGNED_DIVISIONS) if tests else None


def _check(tests: list[Test], whole: bool, warp: Warp, values: Sequence[Array]) -> None:
    if whole:
        values = [as_unsigned(value) for value in values]
    for test in tests:
        wrong, said = test(*values)
        bad = _rows(wrong) & warp.active[:, None]
        if bad.any():
            lane, element = (int(at) for at in np.argwhere(bad)[0])
            warp.fail(Undefined, said.format(*(_rows(value)[lane, element] for value in values)), lane=lane)


def _rows(value: Array) -> Array:
    """A row for each thread."""
    return np.broadcast_to(value, (WARP, *value.shape[1:])).reshape(WARP, -1)
