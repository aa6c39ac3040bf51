"""The warps that compute: what they tell each other by shared memory and by words, and products of slots with x."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32, i32, i64

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout

from .block import Here, as_number, element_address
from .lanes import (
    CHUNK,
    COLUMNS,
    ROWS,
    WARP,
    Operand,
    across,
    dot,
    has_row,
    operand,
    pair_of,
    split,
    tile_times,
    total,
    vector,
)
from .plan import HEAD

COMPUTE = 1  # their barrier


class Warps:
    """`x`: the lane's pair of columns of the residual stream; `late`: waits that took too long."""

    def __init__(self, here: Here, biases: dict[str, Any], sums: Any, launches: Any, eps: Any, position: Any) -> None:
        s = here.step
        self.here, self.step, self.biases, self.sums, self.launches = here, s, biases, sums, launches
        self.eps, self.position = eps, position
        self.warp, self.lane = here.warp, here.lane
        self.chunk = self.lane % CHUNK
        self.own = self.warp * WARP + pair_of(self.lane)  # the number of the lane's pair
        self.batches = -(-(max(s.units) // ROWS + 1) // 4)
        # Sums over a warp's columns: of rows of fc in turns, and of those of q, k and v.
        self.saved = cute.shared_tensor("f32", Layout((2 * self.batches + 1) * s.warps * WARP))
        self.weighed = cute.shared_tensor("f32", Layout(s.warps * HEAD))  # values of a warp's positions
        self.weights = cute.shared_tensor("f32", Layout(s.warps * 2))  # their maximum, and the sum of their weights
        # Pairs of bf16 and of what is rounded off: of the warps' columns of the residual stream, of the head's result.
        self.pairs = cute.shared_tensor("i32", Layout(s.warps * COLUMNS))
        self.merged = cute.shared_tensor("i32", Layout(HEAD))
        self.whole_sums = cute.shared_tensor("f32", Layout(2 * s.warps))
        # Biases of the next use, read a layer ahead: rows of q, k, v; hidden units.
        self.qkv_bias = cute.make_fragment(1, "f32")
        self.fc_bias = cute.make_fragment(-(-max(s.units) // WARP), "f32")
        self.x, self.late = cute.make_fragment(2, "f32"), cute.make_fragment(1, "i32")
        self.launch = as_number(launches[here.block])
        self.set = self.launch % 2

    def clear(self, words: Any, thread: Any, threads: int, count: int, first: Any) -> None:
        for i in range(0, count, threads):
            at = thread + i
            with cute.when(cute.less(at, count)):
                words[at + first] = cute.scalar(0, i64)

    def meet(self) -> None:
        """The computing warps of the block wait for each other."""
        arch.instruction("barrier", COMPUTE, n=self.step.warps * WARP)

    def whole(self, value: Any, place: int) -> Any:
        """The sum over all lanes of all warps."""
        s = self.step
        value = across(value, 16, 8, 4, 2, 1)
        with cute.when(cute.same(self.lane, 0)):
            self.whole_sums[self.warp + place * s.warps] = value
        self.meet()
        return total([self.whole_sums[i + place * s.warps] for i in range(s.warps)])

    def _take(self, results: Any) -> list[Any]:
        """The values of words."""
        *values, late = results
        self.late[0] = self.late[0] + cute.Scalar(late)
        return [cute.Scalar(value) for value in values]

    def words(self, words: Any, first: Any, count: int, layer: Any) -> list[Any]:
        """Words of the cluster, once they are those of a layer."""
        at = element_address(words, first)
        return self._take(arch.instruction("word.wait", at, layer + 1, results=[f32] * count + [i32], n=count))

    def sum(self, layer: Any, which: int, terms: int) -> list[Any]:
        """The lane's pair of columns of the residual's sums, once all terms are there."""
        at = element_address(self.sums, self.column(layer, which, self.own * 2))
        return self._take(arch.instruction("word.wait_sum", at, terms, results=[f32] * 2 + [i32], n=2))

    def column(self, layer: Any, which: int, column: Any) -> Any:
        s = self.step
        return ((self.set * s.layers + layer) * 2 + which) * s.width + column

    def add(self, layer: Any, which: int, column: Any, value: Any) -> None:
        arch.instruction("word.add", element_address(self.sums, self.column(layer, which, column)), value)

    def tell(self, words: Any, first: Any, block: Any, layer: Any, *values: Any) -> None:
        """Writes words of a block of the cluster."""
        there = arch.instruction("cluster.map", element_address(words, first), block, results=[i32])[0]
        arch.instruction("word.store", there, layer + 1, *values, n=len(values))

    def bias(self, name: str, layer: Any, number: Any, count: int = 1) -> list[Any]:
        """`count` biases from number * count on, of a layer."""
        size = {"qkv": 3, "fc": 4}.get(name, 1) * self.step.width
        return [value.to("f32") for value in vector(self.biases[name], layer * (size // count) + number, count)]

    def arrive(self, number: Any) -> None:
        """The slot has been read."""
        arch.instruction("warp_sync")
        with cute.when(cute.same(self.lane, 0)):
            self.here.free.arrive(number)

    def operand(self, pair: Sequence[Any]) -> Operand:
        """The warp's columns, of which each lane has its own pair."""
        first = self.warp * COLUMNS
        high, low = split(pair)
        self.pairs[first + pair_of(self.lane)] = high
        self.pairs[first + WARP + pair_of(self.lane)] = low
        arch.instruction("warp_sync")
        made = operand(self.pairs, first, self.lane)
        arch.instruction("warp_sync")
        return made

    def tiles(self, first: Any, count: int, x: Operand) -> list[Any]:
        """The products of tiles of 8 rows with the warp's columns of x, two tiles at a time."""
        made, here = list[Any](), self.here
        for i in range(0, count, 2):
            two = range(i, min(i + 2, count))
            for j in two:
                here.full.wait(first + j)
            at = [here.chunk(first + j) + self.warp * (COLUMNS // CHUNK) for j in two]
            made += tile_times(here.ring, at, self.step.width // CHUNK, self.lane, x)
            arch.instruction("warp_sync")
            with cute.when(cute.same(self.lane, 0)):
                for j in two:
                    here.free.arrive(first + j)
        return made

    def save(self, values: list[Any], place: Any, squares: Any) -> None:
        """Puts a warp's sums of rows where all warps find them, and behind them its sum of squares."""
        with cute.when(has_row(self.lane)):
            for i, value in enumerate(values):
                self.saved[self.row_place(place, i // 4, self.warp) + i % 4 * ROWS + self.lane // 4] = value
        with cute.when(cute.same(self.lane, 0)):
            i = len(values)
            self.saved[self.row_place(place, i // 4, self.warp) + i % 4 * ROWS] = squares

    def row_place(self, place: Any, batch: Any, warp: Any) -> Any:
        return ((place * self.batches + batch) * self.step.warps + warp) * WARP

    def row_total(self, place: Any, batch: Any, row: Any) -> Any:
        """A row's sum over all warps."""
        return total([self.saved[self.row_place(place, batch, warp) + row] for warp in range(self.step.warps)])

    def scale(self, place: Any, count: int) -> Any:
        """1 by the root mean square, which `_save` has put behind `count` tiles."""
        mean = self.row_total(place, count // 4, count % 4 * ROWS) * (1.0 / self.step.width)
        return cute.Scalar(arch.instruction("rsqrt", mean + self.eps, results=[f32])[0])

    def squares(self) -> Any:
        """Of the warp's columns."""
        return across(dot([self.x[0], self.x[1]], [self.x[0], self.x[1]]), 16, 8, 4, 2, 1)
