"""The leaves of shapes and strides: integers, numbers that only the kernel knows, and steps along a coordinate.

All arithmetic on leaves goes through their operators, so that a subclass of `Dynamic` that is bound to a value of a
kernel can emit its operations. Source of the text forms: NVIDIA's CuTe IR, "CuTe types".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


class LayoutError(ValueError):
    """A layout, a coordinate or an operation on them that is not defined. The message names both."""


@dataclass(frozen=True)
class Dynamic:
    """An integer that is known when the kernel runs. `divisibility`: it is a multiple of this number."""

    width: int = 32  # bits
    divisibility: int = 1

    def __str__(self) -> str:
        said = ["i64"] * (self.width == 64) + [f"div={self.divisibility}"] * (self.divisibility > 1)
        return "?{" + " ".join(said) + "}" if said else "?"

    def _with(self, other: Leaf, divisibility: int) -> Dynamic:
        width = max(self.width, other.width) if isinstance(other, Dynamic) else self.width
        return Dynamic(width, divisibility)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Basis):
            return other * self
        if isinstance(other, int) and other in (0, 1):
            return self if other else 0
        return self._with(other, self.divisibility * divisor(other))

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        return self if other == 0 else self._with(other, math.gcd(self.divisibility, divisor(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self if other == 0 else self._with(other, math.gcd(self.divisibility, divisor(other)))

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, math.gcd(self.divisibility, divisor(other)))

    def __floordiv__(self, other: Any) -> Any:
        if other == 1:
            return self
        exact = isinstance(other, int) and self.divisibility % other == 0
        return self._with(other, self.divisibility // other if exact else 1)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(other, 1)

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, int) and self.divisibility % other == 0:
            return 0
        return self._with(other, math.gcd(self.divisibility, divisor(other)))

    def __rmod__(self, other: Any) -> Any:
        return self._with(other, 1)

    def ceil_by(self, other: Any) -> Any:
        """This by another, rounded up."""
        return (self + (other - 1)) // other

    def ceil_of(self, other: int) -> Any:
        """A number by this, rounded up."""
        return (other + (self - 1)) // self

    def shape_by(self, other: Any) -> Any:
        """What a divisor leaves of this size, where one of the two divides the other."""
        return self.ceil_by(other)

    def shape_of(self, other: int) -> Any:
        """What this divisor leaves of a size, where one of the two divides the other."""
        return self.ceil_of(other)

    def __abs__(self) -> Any:
        return self

    def minimum(self, other: Any) -> Any:
        """The smaller of the two."""
        return self._with(other, math.gcd(self.divisibility, divisor(other)))

    def swizzled(self, bits: int, base: int, shift: int) -> Any:
        """The number with `bits` bits from `base` on XORed with those `shift` higher, or lower if it is negative."""
        lowest = base if shift > 0 else base - shift  # the lowest bit that changes
        return self._with(1, math.gcd(self.divisibility, 1 << lowest)) if bits else self

    def split(self, unit: int) -> tuple[Any, Any]:
        """Two numbers whose sum this is. The first is a multiple of `unit`."""
        return (self, 0) if self.divisibility % unit == 0 else (0, self)


@dataclass(frozen=True)
class Basis:
    """A stride of `scale` along mode `path` of a coordinate: `2@1` adds 2 to mode 1, and `2@1@0`, with the path (0, 1),
    to mode 1 of mode 0. A layout with such strides maps to coordinates, which is what TMA takes."""

    scale: int | Dynamic
    path: tuple[int, ...]

    def __str__(self) -> str:
        return "@".join(map(str, (self.scale, *reversed(self.path))))

    def __mul__(self, other: Any) -> Basis | int:
        return 0 if isinstance(other, int) and other == 0 else Basis(self.scale * other, self.path)

    __rmul__ = __mul__


Leaf = int | Dynamic | Basis
Size = int | Dynamic
Path = tuple[int, ...]  # of a coordinate's mode, from the outside in; empty for a plain number


def split(number: Size, unit: int) -> tuple[Any, Any]:
    """Two numbers whose sum a number is. The first is a multiple of `unit`."""
    return number.split(unit) if isinstance(number, Dynamic) else (number - number % unit, number % unit)


def divisor(leaf: Any) -> int:
    """The largest number by which a leaf can be divided for certain; 0 for 0."""
    return leaf.divisibility if isinstance(leaf, Dynamic) else abs(leaf)


def is_static(*leaves: Any) -> bool:
    """True if all are known when the kernel is compiled."""
    return not any(isinstance(x.scale if isinstance(x, Basis) else x, Dynamic) for x in leaves)


def ceil_div(a: Any, b: Any) -> Any:
    """a / b, rounded up. Both are positive."""
    if isinstance(a, Dynamic):
        return a.ceil_by(b)
    return b.ceil_of(a) if isinstance(b, Dynamic) else -(-a // b)


def quotient(index: Any, by: Any) -> Any:
    """index / by. A negative index counts as a positive one does: it is rounded towards 0."""
    negative = isinstance(index, int) and index < 0 and isinstance(by, int)
    return -(-index // by) if negative else index // by


def remainder(index: Any, by: Any) -> Any:
    """What `quotient` leaves, with the sign of the index."""
    negative = isinstance(index, int) and index < 0 and isinstance(by, int)
    return -(-index % by) if negative else index % by


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two sizes; dynamic if one of them is."""
    if is_static(a, b):
        return min(a, b)
    return a.minimum(b) if isinstance(a, Dynamic) else b.minimum(a)
