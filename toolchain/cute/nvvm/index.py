"""Numbers of the layout algebra that a kernel computes: their arithmetic emits `arith` operations.

A layout evaluated at such a number emits the kernel's own index arithmetic, by the code that evaluates it in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation, SSAValue

from ..layout import Dynamic


@dataclass(frozen=True, eq=False)
class Index(Dynamic):
    """A number of 32 bits that is not negative, bound to a value of a kernel. `below`: it is less than this, if known;
    then divisions and remainders that change nothing emit nothing."""

    value: SSAValue | None = None
    builder: Builder | None = None
    below: int | None = None

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int) and other in (0, 1):
            return self if other else 0
        if isinstance(other, int | Index):
            below = self.below * other if self.below is not None and isinstance(other, int) else None
            return self._emit(arith.MuliOp, other, super().__mul__(other), below)
        return super().__mul__(other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 0:
            return self
        return self._emit(arith.AddiOp, other, super().__add__(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 0:
            return self
        return self._emit(arith.SubiOp, other, super().__sub__(other))

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 1:
            return self
        if isinstance(other, int) and self.below is not None and self.below <= other:
            return 0
        below = -(-self.below // other) if self.below is not None and isinstance(other, int) else None
        return self._emit(arith.DivUIOp, other, super().__floordiv__(other), below)

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, int) and self.below is not None and self.below <= other:
            return self
        known = super().__mod__(other)
        return (
            known if known == 0 else self._emit(arith.RemUIOp, other, known, other if isinstance(other, int) else None)
        )

    def minimum(self, other: Any) -> Any:
        return self._emit(arith.MinUIOp, other, super().minimum(other))

    def __rsub__(self, other: Any) -> Any:
        return self._constant(other) - self

    def __rfloordiv__(self, other: Any) -> Any:
        return self._constant(other) // self

    def __rmod__(self, other: Any) -> Any:
        return self._constant(other) % self

    def _constant(self, number: int) -> Index:
        return constant(number, self._builder)

    @property
    def _builder(self) -> Builder:
        if self.builder is None:
            raise ValueError("this index is bound to no kernel")
        return self.builder

    def _emit(self, kind: type[Operation], other: Any, known: Any, below: int | None = None) -> Index:
        right = other if isinstance(other, Index) else self._constant(other)
        op = self._builder.insert(kind(self.value, right.value))  # pyright: ignore[reportCallIssue]
        return Index(known.width, known.divisibility, op.results[0], self._builder, below)


def as_value(leaf: Any, builder: Builder) -> SSAValue:
    """A number as a value of a kernel: its own, or a constant. Raises ValueError for one that has none."""
    made = constant(leaf, builder) if isinstance(leaf, int) else leaf
    if not isinstance(made, Index) or made.value is None:
        raise ValueError(f"{leaf} is bound to no kernel")
    return made.value


def constant(number: int, builder: Builder) -> Index:
    """A known number as a value of a kernel."""
    made = builder.insert(arith.ConstantOp(IntegerAttr(number, i32)))
    return Index(32, abs(number), made.result, builder, number + 1)


def index(value: SSAValue, builder: Builder, *, below: int | None = None, divisibility: int = 1) -> Index:
    """A value of a kernel, an i32, as a number of the layout algebra."""
    return Index(32, divisibility, value, builder, below)
