"""A number that the algebra does not know, and that the comparison does.

The algebra treats it as every number of a kernel, and its arithmetic computes what the kernel would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolchain.cute.layout import Basis, Dynamic


@dataclass(frozen=True, eq=False)
class Known(Dynamic):
    """`value`: of the number; it is not negative where it enters."""

    value: int = 0

    @classmethod
    def of(cls, value: int) -> Known:
        return cls(value=value)

    def __str__(self) -> str:
        return f"?{self.value}"

    def _made(self, other: Any, plain: Any, function: Callable[[int, int], int]) -> Any:
        """The plain result, if it is known, else one with its value."""
        if not isinstance(plain, Dynamic):
            return plain
        return Known(plain.width, plain.divisibility, function(self.value, number(other)))

    def __mul__(self, other: Any) -> Any:
        return (
            other * self if isinstance(other, Basis) else self._made(other, super().__mul__(other), lambda a, b: a * b)
        )

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        return self._made(other, super().__add__(other), lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._made(other, super().__sub__(other), lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._made(other, super().__rsub__(other), lambda a, b: b - a)

    def __floordiv__(self, other: Any) -> Any:
        return self._made(other, super().__floordiv__(other), _quotient)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._made(other, super().__rfloordiv__(other), lambda a, b: _quotient(b, a))

    def __mod__(self, other: Any) -> Any:
        return self._made(other, super().__mod__(other), lambda a, b: a - _quotient(a, b) * b)

    def __rmod__(self, other: Any) -> Any:
        return self._made(other, super().__rmod__(other), lambda a, b: b - _quotient(b, a) * a)

    def minimum(self, other: Any) -> Any:
        return self._made(other, super().minimum(other), min)


def _quotient(a: int, b: int) -> int:
    """Rounded towards 0. Raises ZeroDivisionError."""
    return a // b if (a >= 0) == (b > 0) else -(-a // b)


def number(leaf: Any) -> int:
    """A leaf's value."""
    return leaf.value if isinstance(leaf, Known) else leaf


def settled(nested: Any) -> Any:
    """A tuple with its values."""
    if isinstance(nested, tuple):
        return tuple(map(settled, nested))
    return Basis(number(nested.scale), nested.path) if isinstance(nested, Basis) else number(nested)
