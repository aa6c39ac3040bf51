"""Operations from registers to registers, thread by thread: what each computes, in numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects import arith, llvm, math
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation

from ...nvvm.location import place
from ..state.block import Array
from ..state.findings import NoSemantics
from .undefined import SHIFTS, SIGNED_DIVISIONS, TO_INTEGER, UNSIGNED_DIVISIONS, as_unsigned
from .values import kind_of

Function = Callable[..., Array]


def _on_unsigned(function: Function) -> Function:
    def made(a: Array, b: Array) -> Array:
        return function(as_unsigned(a), as_unsigned(b)).view(a.dtype)

    return made


def _divided(a: Array, b: Array) -> Array:
    """Rounded to zero, as C does; numpy rounds down."""
    down = a // b
    return down + ((down * b != a) & ((a < 0) != (b < 0)))


def _remainder(a: Array, b: Array) -> Array:
    return a - _divided(a, b) * b


def _with_zeros(function: Function, of_zeros: Function) -> Function:
    """A maximum or minimum for which -0 is less than +0. numpy takes either."""

    def made(a: Array, b: Array) -> Array:
        found = function(a, b)
        if found.all():
            return found
        return np.where((a == 0) & (b == 0), of_zeros(a, b), found).astype(a.dtype, copy=False)

    return made


def _lesser_zero(a: Array, b: Array) -> Array:
    return -(-a - b)


BINARY: dict[type[Operation], Function] = {
    arith.AddiOp: np.add, arith.SubiOp: np.subtract, arith.MuliOp: np.multiply,
    arith.DivSIOp: _divided, arith.DivUIOp: _on_unsigned(np.floor_divide), arith.RemSIOp: _remainder,
    arith.RemUIOp: _on_unsigned(np.remainder), arith.AndIOp: np.bitwise_and, arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor, arith.ShLIOp: _on_unsigned(np.left_shift), arith.ShRSIOp: np.right_shift,
    arith.ShRUIOp: _on_unsigned(np.right_shift), arith.AddfOp: np.add, arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply, arith.DivfOp: np.divide, arith.MinSIOp: np.minimum, arith.MaxSIOp: np.maximum,
    arith.MinUIOp: _on_unsigned(np.minimum), arith.MaxUIOp: _on_unsigned(np.maximum),
    arith.MaximumfOp: _with_zeros(np.maximum, np.add), arith.MinimumfOp: _with_zeros(np.minimum, _lesser_zero),
    arith.MaxnumfOp: _with_zeros(np.fmax, np.add), arith.MinnumfOp: _with_zeros(np.fmin, _lesser_zero),
    llvm.AddOp: np.add, llvm.SubOp: np.subtract, llvm.MulOp: np.multiply, llvm.UDivOp: _on_unsigned(np.floor_divide),
    llvm.SDivOp: _divided, llvm.URemOp: _on_unsigned(np.remainder), llvm.SRemOp: _remainder, llvm.AndOp: np.bitwise_and,
    llvm.OrOp: np.bitwise_or, llvm.XOrOp: np.bitwise_xor, llvm.ShlOp: _on_unsigned(np.left_shift),
    llvm.LShrOp: _on_unsigned(np.right_shift), llvm.AShrOp: np.right_shift, llvm.FAddOp: np.add,
    llvm.FSubOp: np.subtract, llvm.FMulOp: np.multiply, llvm.FDivOp: np.divide,
}  # fmt: skip


NOT_OF_BITS = (*SIGNED_DIVISIONS, *UNSIGNED_DIVISIONS, *SHIFTS, *TO_INTEGER)
SIGNED_OF_BITS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp, arith.CmpiOp, llvm.AddOp,
                  llvm.SubOp, llvm.MulOp)  # fmt: skip


def _of_bits(function: Function) -> Function:
    """The function for numbers of one bit: with a sign, a set bit is -1."""

    def made(a: Array, b: Array) -> Array:
        return (function(-a.astype(np.int8), -b.astype(np.int8)) & 1).astype(np.bool_)

    return made


def fma(a: Array, b: Array, c: Array) -> Array:
    """Rounded once. The product of two f32 is exact in f64; the sum is rounded to odd there, and then to nearest."""
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    taken = total - product
    error = (product - (total - taken)) + (addend - taken)
    even = np.isfinite(total) & (error != 0) & (total.view(np.int64) % 2 == 0)
    return np.where(even, np.nextafter(total, np.copysign(np.inf, error)), total).astype(a.dtype)


UNARY: dict[type[Operation], Function] = {
    math.SqrtOp: np.sqrt, math.AbsFOp: np.abs, math.ExpOp: np.exp, math.Exp2Op: np.exp2, math.TanhOp: np.tanh,
    math.LogOp: np.log, math.Log2Op: np.log2, arith.NegfOp: np.negative,
}  # fmt: skip
SIGNED = (arith.ExtSIOp, llvm.SExtOp, arith.TruncIOp, llvm.TruncOp, arith.IndexCastOp, arith.ExtFOp, arith.TruncFOp,
          llvm.FPExtOp, llvm.FPTruncOp, arith.SIToFPOp, llvm.SIToFPOp, llvm.PtrToIntOp, llvm.IntToPtrOp)  # fmt: skip
OF_SIGNED = (arith.ExtSIOp, llvm.SExtOp, arith.IndexCastOp, arith.SIToFPOp, llvm.SIToFPOp)
FROM_UNSIGNED = (arith.ExtUIOp, llvm.ZExtOp, arith.UIToFPOp)
BITCASTS = (arith.BitcastOp, llvm.BitcastOp)
_SIGNED_TESTS: dict[int, Function] = {0: np.equal, 1: np.not_equal, 2: np.less, 3: np.less_equal, 4: np.greater,
                                      5: np.greater_equal}  # fmt: skip
_FLOAT_TESTS: tuple[Function, ...] = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal)


def _compared(predicate: int) -> Function:
    if predicate < 6:
        return _SIGNED_TESTS[predicate]
    test = _SIGNED_TESTS[predicate - 4]

    def made(a: Array, b: Array) -> Array:
        return test(as_unsigned(a), as_unsigned(b))

    return made


def _compared_floats(predicate: int) -> Function:
    """Predicates 1 to 6 and their unordered forms 8 to 13; 7 is ordered, 14 unordered."""

    def made(a: Array, b: Array) -> Array:
        unordered = np.isnan(a) | np.isnan(b)
        if predicate in (0, 15):
            return np.full(unordered.shape, predicate == 15)
        if predicate in (7, 14):
            return unordered if predicate == 14 else ~unordered
        number = (predicate - 1) % 7
        test = a != b if number == 5 else _FLOAT_TESTS[number](a, b)
        return (test & ~unordered) if predicate < 7 else (test | unordered)

    return made


def _bitcast(op: Operation) -> Function:
    source, target = kind_of(op.operands[0].type), kind_of(op.results[0].type)

    def made(value: Array) -> Array:
        wide = np.ascontiguousarray(value if source.count else value[:, None]).view(target.dtype)
        return wide if target.count else wide[:, 0]

    return made


def _converted(op: Operation, *, unsigned: bool = False) -> Function:
    dtype, source = kind_of(op.results[0].type).dtype, kind_of(op.operands[0].type).dtype
    wide = np.dtype(f"u{dtype.itemsize}") if unsigned and dtype.kind == "i" else dtype
    from_unsigned = unsigned or isinstance(op, llvm.IntToPtrOp)
    signed_bit = isinstance(op, OF_SIGNED) and source == np.bool_

    def made(value: Array) -> Array:
        if dtype == np.bool_:
            return (value & 1).astype(dtype)
        whole = (as_unsigned(value) if from_unsigned else value).astype(wide).view(dtype)
        return -whole if signed_bit else whole

    return made


def _rounded_to_zero(op: Operation) -> Function:
    dtype = kind_of(op.results[0].type).dtype
    wide = np.uint64 if isinstance(op, arith.FPToUIOp) else np.int64

    def made(value: Array) -> Array:
        return np.trunc(value.astype(np.float64)).astype(wide).astype(dtype)

    return made


def function_of(op: Operation) -> Function | None:
    """What an operation computes from its operands, or None if it is none of these. Raises NoSemantics."""
    kind, function = type(op), _function_of(op)
    if function is None or i1 not in (*op.operand_types, *op.result_types):
        return function
    if kind in NOT_OF_BITS:
        raise NoSemantics(f"{place(op)}the executor has no {op.name} of i1")
    return _of_bits(function) if kind in SIGNED_OF_BITS and op.operands[0].type == i1 else function


def _function_of(op: Operation) -> Function | None:
    kind = type(op)
    if (found := BINARY.get(kind) or UNARY.get(kind)) is not None:
        return found
    if kind is math.FmaOp and kind_of(op.results[0].type).dtype != np.float64:
        return fma
    if isinstance(op, arith.CmpiOp):
        return _compared(op.predicate.value.data)
    if isinstance(op, arith.CmpfOp):
        return _compared_floats(op.predicate.value.data)
    if kind in SIGNED:
        return _converted(op)
    if kind in FROM_UNSIGNED:
        return _converted(op, unsigned=True)
    if kind in TO_INTEGER:
        return _rounded_to_zero(op)
    return _bitcast(op) if kind in BITCASTS else None


def select(condition: Array, yes: Array, no: Array) -> Array:
    """One of two values."""
    if yes.ndim > 1 or no.ndim > 1:
        condition = condition[:, None] if condition.ndim == 1 else condition
    return np.where(condition, yes, no).astype(yes.dtype, copy=False)
