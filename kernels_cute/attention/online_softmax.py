"""The softmax of attention's scores in the registers of a tiled product, one tile of keys after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout, size

LOG2_E = 1.4426950408889634
LEAST = -1e30  # below every score; finite, so that the difference of two of them is 0 and not NaN
LANES = (1, 2, 4, 8, 16)  # of a warp: the bits of a lane's number
MOST = 2.0**120  # of a thread's sums: below where bf16 and f32 end, and 83 in the scores above the anchor


class Softmax:
    """Of the rows of a thread: the maximum so far, and the sum of the weights relative to it. A thread holds some
    columns of its rows; the lanes beside it hold the others."""

    def __init__(self, mma: cute.TiledMma, tile: Layout, worker: Any, scale: Any) -> None:
        threads, values = mma.partition("c", tile)
        self.height, self.width = tile.shape
        self.places = [(values(i) % self.height, values(i) // self.height) for i in range(size(values))]
        self.rows = rows_of(mma, tile)
        self.lanes = [bit for bit in LANES if threads(bit) % self.height == threads(0)]
        self.row, self.column = threads(worker) % self.height, threads(worker) // self.height
        self.scale, self.minus = scale * LOG2_E, scale * -LOG2_E
        self.maximum, self.total, self.factor = (cute.make_fragment(len(self.rows), "f32") for _ in range(3))

    def begin(self) -> None:
        """No scores so far."""
        cute.fill(self.maximum, LEAST)
        cute.fill(self.total, 0.0)

    def mask(self, scores: Any, first: Any, start: Any) -> None:
        """Keys behind a query have no weight. `first`, `start`: positions of the tile's first query and key."""
        shift = self.height + self.width  # so that no number is below zero
        below = first + self.row + (shift + 1) - (start + self.column)
        for i, (row, column) in enumerate(self.places):
            scores[i] = cute.select(cute.less(column - row + shift, below), scores[i], float("-inf"))

    def weigh(self, scores: Any) -> None:
        """Scores become weights, 2^(score - maximum) in units of log 2. `factor`: of what was summed before."""
        for r, row in enumerate(self.rows):
            most = self._of_row(tree([scores[i] for i in row], cute.Scalar.maximum), cute.Scalar.maximum)
            most = most.maximum(self.maximum[r])
            self.factor[r] = _exp2((self.maximum[r] - most) * self.scale)
            self.maximum[r] = most
            self.total[r] = self.total[r] * self.factor[r]
        self.weigh_as_before(scores)

    def weigh_as_before(self, scores: Any) -> None:
        """Scores become weights relative to the maximum that is there, which need not be theirs: any number gives the
        same quotient unless something overflows."""
        for r, row in enumerate(self.rows):
            base = self.maximum[r] * self.minus
            for i in row:
                scores[i] = _exp2(scores[i].fma(self.scale, base))
            self.total[r] = self.total[r] + tree([scores[i] for i in row], cute.Scalar.__add__)

    def rescale(self, sums: Any, mma: cute.TiledMma, tile: Layout) -> None:
        """What was summed before, relative to the new maximum."""
        for r, row in enumerate(rows_of(mma, tile)):
            for i in row:
                sums[i] = sums[i] * self.factor[r]

    def divide(self, sums: Any, mma: cute.TiledMma, tile: Layout) -> None:
        """Weighted sums become averages."""
        for r, row in enumerate(rows_of(mma, tile)):
            total = self._of_row(self.total[r], cute.Scalar.__add__)
            inverse = cute.Scalar(arch.instruction("reciprocal", total, results=[total.type])[0])
            for i in row:
                sums[i] = sums[i] * inverse

    def is_sound(self, sums: Any) -> Any:
        """True if nothing of this thread overflowed, an i1."""
        level = tree([self.total[r] for r in range(len(self.rows))], cute.Scalar.__add__)
        level = tree([sums[i] for i in range(size(sums.layout))], cute.Scalar.__add__).fma(0.0, level)
        return cute.less(level, MOST)  # what is not finite makes it NaN, which is not below

    def _of_row(self, value: Any, join: Callable[[Any, Any], Any]) -> Any:
        """A value of all lanes that share a row."""
        for lane in self.lanes:
            value = join(value, cute.Scalar(arch.instruction("shuffle.xor", value, results=[value.type], n=lane)[0]))
        return value


def rows_of(mma: cute.TiledMma, tile: Layout) -> list[list[int]]:
    """The numbers of a thread's values of the accumulator, row by row."""
    values, height = mma.partition("c", tile)[1], size(tile[0])
    made: dict[int, list[int]] = {}
    for i in range(size(values)):
        made.setdefault(values(i) % height, []).append(i)
    return list(made.values())


def tree(values: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    """All values joined in pairs, so that few wait for each other."""
    while len(values) > 1:
        half = len(values) // 2
        joined = [join(a, b) for a, b in zip(values[:half], values[half:], strict=False)]
        values = [*joined, *values[2 * half :]]
    return values[0]


def _exp2(x: Any) -> Any:
    return cute.Scalar(arch.instruction("exp2", x, results=[x.type])[0])
