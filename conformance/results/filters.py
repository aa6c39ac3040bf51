"""Which rows of the matrix to run: by the cell's name, by shape, or those that failed before."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from toolchain.errors import UsageError

from .expression import Expression
from .result import Results

_SIZE = re.compile(r"([A-Za-z]\w*)=(\d+)")
_TERM = re.compile(r"([A-Za-z]\w*)\s*(<=|>=|!=|=|<|>)\s*(\d+)")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "=": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """A shape to run, such as `M<=64 K=768 misaligned`: all of its terms must hold. A comparison is of one of the row's
    sizes, which it must have; another word must be one of the row's words."""

    text: str

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise UsageError("--shape is empty", hint="terms such as 'M<=64 K=768 misaligned'")

    def takes(self, shape: str) -> bool:
        sizes = self._sizes(shape)
        holds = [name in sizes and compare(sizes[name], size) for name, compare, size in self._comparisons]
        return all(holds) and self._words <= set(shape.split())

    def may_take(self, shape: str) -> bool:
        """False if no row can be taken whose shape begins so: one of the sizes in it does not fit."""
        sizes = self._sizes(shape)
        return all(name not in sizes or compare(sizes[name], size) for name, compare, size in self._comparisons)

    @property
    def _comparisons(self) -> list[tuple[str, Callable[[int, int], bool], int]]:
        return [(name, _COMPARE[sign], int(size)) for name, sign, size in _TERM.findall(self.text)]

    @property
    def _words(self) -> set[str]:
        return set(_TERM.sub(" ", self.text).split())

    @staticmethod
    def _sizes(shape: str) -> dict[str, int]:
        return {name: int(size) for name, size in _SIZE.findall(shape)}


@dataclass(frozen=True)
class Filter:
    """`expression`: of the cell's name. `shapes`: one of these, if there are any. `only`: cells with shapes, or None
    for all."""

    expression: Expression = field(default_factory=Expression)
    shapes: tuple[Shape, ...] = ()
    only: frozenset[tuple[str, str]] | None = None

    def takes_cell(self, name: str) -> bool:
        return self.expression(name) and (self.only is None or any(cell == name for cell, _ in self.only))

    def takes(self, name: str, shape: str) -> bool:
        """True for a row to run."""
        named = self.expression(name) and (self.only is None or (name, shape) in self.only)
        return named and (not self.shapes or any(each.takes(shape) for each in self.shapes))

    def may_take(self, name: str, shape: str) -> bool:
        """False if a cell has no row to run among those whose shapes begin so."""
        if not self.takes_cell(name) or not (not self.shapes or any(each.may_take(shape) for each in self.shapes)):
            return False
        return self.only is None or any(
            cell == name and f"{found} ".startswith(f"{shape} ") for cell, found in self.only
        )

    @property
    def words(self) -> str:
        """The filter in words; empty for one that takes everything."""
        only = () if self.only is None else (f"{len(self.only)} rows: {sorted(self.only)}",)
        return "; ".join(filter(None, (self.expression.text, *(each.text for each in self.shapes), *only)))


EVERYTHING = Filter()


def failed_rows(results: Results) -> frozenset[tuple[str, str]]:
    """The cells with shapes that failed or raised in a run."""
    return frozenset((row.cell, row.shape) for row in results.rows if row.status in ("failed", "error"))


def parse(expression: str, shapes: Sequence[str]) -> Filter:
    """The filter that these words describe. Raises UsageError."""
    return Filter(Expression(expression), tuple(map(Shape, shapes)))
