"""Numbers of the layout algebra that a kernel computes: their arithmetic emits `arith` operations.

A layout evaluated at such a number emits the kernel's own index arithmetic, by the code that evaluates it in Python.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...errors import UsageError
from ..layout import Dynamic
from ..layout.leaves import divisor
from .emit import Emitter


def undecided() -> UsageError:
    """The error of Python code that asks how a number turns out, which only the kernel knows when it runs."""
    return UsageError(
        "Python runs once, before the kernel does, and cannot decide by a number of the kernel",
        hint="with cute.when(cute.less(a, b)): ..., cute.same(a, b), or cute.select",
    )


@dataclass(frozen=True, eq=False)
class Index(Dynamic):
    """`root` + `plus`: a number of 32 bits that is not negative, bound to a value of a kernel.

    `plus`, which Python knows, stays apart until the number is used: numbers that differ in it alone share all else.
    `step`: `root` is a multiple of it. `below`: the number is less than this, if known; then divisions and remainders
    that change nothing emit nothing.
    """

    root: SSAValue | None = None
    builder: Emitter | None = None
    below: int | None = None
    plus: int = 0
    step: int = 1

    @property
    def value(self) -> SSAValue:
        """The number as a value of its kernel. Raises ValueError if it is bound to none."""
        root, builder = self.bound
        return builder.binary(arith.AddiOp, root, builder.number(self.plus)) if self.plus else root

    @property
    def bound(self) -> tuple[SSAValue, Emitter]:
        """The root and its kernel's builder. Raises ValueError if there is none."""
        if self.root is None or self.builder is None:
            raise ValueError("this index is bound to no kernel")
        return self.root, self.builder

    def __bool__(self) -> bool:
        raise undecided()

    def __lt__(self, other: Any) -> bool:
        raise undecided()

    __le__ = __gt__ = __ge__ = __lt__

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
            if other in (0, 1):
                return self if other else 0
            made = self._bare()._emit(arith.MuliOp, other, self.step * abs(other), self._root_below(other))
            return made + self.plus * other
        if isinstance(other, Index):
            return self._emit(arith.MuliOp, other, self.divisibility * other.divisibility)
        return super().__mul__(other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
            return self._moved(other)
        if not isinstance(other, Index):
            return super().__add__(other)
        made = self._bare()._emit(arith.AddiOp, other._bare(), math.gcd(self.step, other.step))
        return made._moved(self.plus + other.plus)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, int):
            return self._moved(-other)
        return self._emit(arith.SubiOp, other, super().__sub__(other).divisibility)

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, int):
            if other == 1:
                return self
            if self.below is not None and self.below <= other:
                return 0
            if self.plus and self.plus % other == 0:
                return self._bare() // other + self.plus // other
        below = -(-self.below // other) if self.below is not None and isinstance(other, int) else None
        return self._emit(arith.DivUIOp, other, super().__floordiv__(other).divisibility, below)

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, int):
            if self.below is not None and self.below <= other:
                return self
            if self.divisibility % other == 0:
                return 0
            if self.plus and self.plus % other == 0:
                return self._bare() % other
        below = other if isinstance(other, int) else None
        return self._emit(arith.RemUIOp, other, super().__mod__(other).divisibility, below)

    def minimum(self, other: Any) -> Any:
        return self._emit(arith.MinUIOp, other, super().minimum(other).divisibility)

    def swizzled(self, bits: int, base: int, shift: int) -> Any:
        field = ((1 << bits) - 1) << base
        mask = (field << max(shift, 0)) & 0x7FFFFFFF  # the number is not negative
        if not mask:
            return self
        builder = self.bound[1]
        moved = builder.binary(arith.AndIOp, self.value, builder.number(mask))
        if shift:
            moved = builder.binary(arith.ShRUIOp if shift > 0 else arith.ShLIOp, moved, builder.number(abs(shift)))
        step = super().swizzled(bits, base, shift).divisibility
        return Index(self.width, step, builder.binary(arith.XOrIOp, self.value, moved), builder, None, 0, step)

    def split(self, unit: int) -> tuple[Any, Any]:
        rest = self.plus % unit
        if self.step % unit == 0:
            return self._moved(-rest), rest
        return self.plus - rest, self._moved(rest - self.plus)

    def __rsub__(self, other: Any) -> Any:
        return self._constant(other) - self

    def __rfloordiv__(self, other: Any) -> Any:
        return self._constant(other) // self

    def __rmod__(self, other: Any) -> Any:
        return self._constant(other) % self

    def _constant(self, number: int) -> Index:
        return constant(number, self.bound[1])

    def _root_below(self, factor: int) -> int | None:
        """What the root times a factor is below."""
        return (self.below - self.plus - 1) * factor + 1 if self.below is not None else None

    def _bare(self) -> Index:
        return self._moved(-self.plus)

    def _moved(self, plus: int) -> Index:
        _ = self.bound
        if plus == 0:
            return self
        below = self.below + plus if self.below is not None else None
        plus += self.plus
        return Index(self.width, math.gcd(self.step, plus), self.root, self.builder, below, plus, self.step)

    def _emit(self, kind: type[Operation], other: Any, step: int, below: int | None = None) -> Index:
        builder = self.bound[1]
        made = builder.binary(kind, self.value, as_value(other, builder))
        return Index(self.width, step, made, builder, below, 0, step)


def as_value(leaf: Any, builder: Emitter) -> SSAValue:
    """A number as a value of a kernel: its own, or a constant. Raises ValueError for one that has none."""
    if isinstance(leaf, int):
        return builder.number(leaf)
    if not isinstance(leaf, Index):
        raise ValueError(f"{leaf} is bound to no kernel")
    return leaf.value


def constant(number: int, builder: Emitter) -> Index:
    """A known number as a value of a kernel."""
    return Index(32, abs(number), builder.number(number), builder, number + 1, 0, divisor(number))


def index(value: SSAValue, builder: Emitter, *, below: int | None = None, divisibility: int = 1) -> Index:
    """A value of a kernel, an i32, as a number of the layout algebra."""
    return Index(32, divisibility, value, builder, below, 0, divisibility)
