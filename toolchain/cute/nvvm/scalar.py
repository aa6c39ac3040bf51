"""Numbers of the layout algebra that a program computes, with signs and of 32 or 64 bits: each operation of the algebra
is one of `arith`, which does not wrap.

`index.py` has numbers of a kernel instead, which are not negative, and whose arithmetic is made as short as it can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from ..layout import Dynamic

Op = TypeVar("Op", bound=Operation)
NO_WRAP = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])
WRAPS = (arith.AddiOp, arith.SubiOp, arith.MuliOp)


class Inserter(Protocol):
    """What puts an operation into its place."""

    def insert(self, op: Op) -> Op: ...


@dataclass(frozen=True, eq=False)
class Scalar(Dynamic):
    """A number with its value and the builder of its operations."""

    value: SSAValue | None = None
    builder: Inserter | None = None

    def __mul__(self, other: Any) -> Any:
        return self._made(arith.MuliOp, self, other, super().__mul__(other))

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __add__(self, other: Any) -> Any:
        return self._made(arith.AddiOp, self, other, super().__add__(other))

    def __radd__(self, other: Any) -> Any:
        return self._made(arith.AddiOp, other, self, super().__radd__(other))

    def __sub__(self, other: Any) -> Any:
        return self._made(arith.SubiOp, self, other, super().__sub__(other))

    def __rsub__(self, other: Any) -> Any:
        return self._made(arith.SubiOp, other, self, super().__rsub__(other))

    def __floordiv__(self, other: Any) -> Any:
        return self._made(arith.DivSIOp, self, other, super().__floordiv__(other))

    def __rfloordiv__(self, other: Any) -> Any:
        return self._made(arith.DivSIOp, other, self, super().__rfloordiv__(other))

    def __mod__(self, other: Any) -> Any:
        return self._made(arith.RemSIOp, self, other, super().__mod__(other))

    def __rmod__(self, other: Any) -> Any:
        return self._made(arith.RemSIOp, other, self, super().__rmod__(other))

    def __abs__(self) -> Any:
        return self._wrapped(self._insert(math.AbsIOp(self._value)), Dynamic(self.width, self.divisibility))

    def ceil_by(self, other: Any) -> Any:
        return self._made(arith.CeilDivSIOp, self, other, self._with(other, 1))

    def ceil_of(self, other: int) -> Any:
        return self._made(arith.CeilDivSIOp, other, self, self._with(other, 1))

    def shape_by(self, other: Any) -> Any:
        return self._quotient_or_one(self // other)

    def shape_of(self, other: int) -> Any:
        return self._quotient_or_one(other // self)

    def _quotient_or_one(self, quotient: Any) -> Any:
        """1 where a quotient is 0: the divisor is the greater one, and takes all."""
        if quotient is self or not isinstance(quotient, Scalar):
            return quotient
        assert self.builder is not None
        kind = IntegerType(quotient.width)
        some = compared("ne", quotient, 0, self.builder)
        one = arith.ConstantOp(IntegerAttr(1, kind))
        there = as_integer(quotient, quotient.width, self.builder)
        then, other = Region(Block([scf.YieldOp(there)])), Region(Block([one, scf.YieldOp(one)]))
        return self._wrapped(self._insert(scf.IfOp(some, [kind], then, other)), Dynamic(quotient.width))

    def minimum(self, other: Any) -> Any:
        return self._made(arith.MinSIOp, self, other, super().minimum(other))

    def swizzled(self, bits: int, base: int, shift: int) -> Any:
        made = super().swizzled(bits, base, shift)
        if not bits:
            return self
        field = ((1 << bits) - 1) << base
        taken = self._of(arith.AndIOp, self, field << shift if shift > 0 else field)
        moved = self._of(arith.ShRUIOp if shift > 0 else arith.ShLIOp, taken, abs(shift)) if shift else taken
        return self._made(arith.XOrIOp, self, moved, made)

    def split(self, unit: int) -> tuple[Any, Any]:
        raise NotImplementedError(f"{self}: a pointer's offset is not a number of this kind, in units of {unit}")

    @property
    def _value(self) -> SSAValue:
        assert self.value is not None
        return self.value

    def _insert(self, op: Operation) -> SSAValue:
        assert self.builder is not None
        return self.builder.insert(op).results[0]

    def _of(self, kind: Any, a: Any, b: Any) -> Scalar:
        made: Scalar = self._made(kind, a, b, Dynamic(self.width))
        return made

    def _made(self, kind: Any, a: Any, b: Any, result: Any) -> Any:
        """The result of an operation, which the algebra says without its value; nothing is emitted where it is known,
        or is one of the operands."""
        if not isinstance(result, Dynamic) or result is self:
            return result
        assert self.builder is not None
        x, y = (as_integer(one, result.width, self.builder) for one in (a, b))
        more = {"overflow": NO_WRAP} if kind in WRAPS else {}
        return self._wrapped(self._insert(kind(x, y, **more)), result)

    def _wrapped(self, value: SSAValue, result: Dynamic) -> Scalar:
        return Scalar(result.width, result.divisibility, value, self.builder)


def as_integer(number: Any, width: int, builder: Inserter) -> SSAValue:
    """A number as an integer of a width: a constant, or its value, extended with its sign if it is narrower."""
    kind = IntegerType(width)
    if isinstance(number, int):
        return builder.insert(arith.ConstantOp(IntegerAttr(number, kind))).result
    assert isinstance(number, Scalar) and number.value is not None
    if number.width < width:
        return builder.insert(arith.ExtSIOp(number.value, kind)).result
    return number.value


def compared(predicate: str, a: Any, b: Any, builder: Inserter) -> SSAValue:
    """`arith.cmpi` of two numbers, an i1, at the greater width."""
    width = max((number.width for number in (a, b) if isinstance(number, Dynamic)), default=32)
    x, y = (as_integer(number, width, builder) for number in (a, b))
    made = builder.insert(arith.CmpiOp(x, y, predicate)).result
    assert made.type == i1
    return made
