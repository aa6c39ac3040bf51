"""The warps that compute: what they tell each other by shared memory and by words, and products of slots with x."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32, i32, i64

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout

from .block import Here, as_number, element_address
from .lanes import CHUNK, COLUMNS, ROWS, WARP, across, dot, pair_of, total, vector
from .plan import ADDED, HEAD, PROJECTED
from .products import Operand, has_row, operand, split, tile_times

COMPUTE = 1  # their barrier


class Warps:
    """`x`: the lane's pair of columns of the residual stream; `late`: the first wait that took too long, or 0."""

    def __init__(self, here: Here, vectors: dict[str, Any], sums: Any, launches: Any, eps: Any, position: Any) -> None:
        """`vectors`: biases, scales, and what else there is a number of for each row or column of a layer's weight."""
        s = here.step
        self.here, self.step, self.vectors, self.sums, self.launches = here, s, vectors, sums, launches
        self.eps, self.position = eps, position
        self.warp, self.lane = here.warp, here.lane
        self.chunk = self.lane % CHUNK
        self.own = self.warp * WARP + pair_of(self.lane)  # the number of the lane's pair
        self.batches = -(-(max(s.units) // ROWS + 1) // 4)
        # Sums over a warp's columns: of rows of fc in turns, and of those of q, k and v.
        self.saved = cute.shared_tensor("f32", Layout((2 * self.batches + 1) * s.warps * WARP))
        self.weighed = cute.shared_tensor("f32", Layout(s.warps * HEAD))  # values of a warp's positions
        self.weights = cute.shared_tensor("f32", Layout(s.warps * 2))  # their maximum, and the sum of their weights
        # Pairs of 16 bits and of what is rounded off: of the warps' columns of the residual stream, then of hidden
        # units; of the head's result.
        self.pairs = cute.shared_tensor("i32", Layout(s.warps * COLUMNS))
        self.merged = cute.shared_tensor("i32", Layout(HEAD))
        self.whole_sums = cute.shared_tensor("f32", Layout(3 * s.warps))
        # Of the next use, read a layer ahead: biases of rows of q, k, v and of hidden units, and in 8 bits their scales
        # and sums; and the norm's weight.
        self.of_qkv = [cute.make_fragment(1, "f32") for _ in self.terms("qkv")]
        self.of_fc = [cute.make_fragment(-(-max(s.units) // WARP), "f32") for _ in self.terms("fc")]
        self.gain = cute.make_fragment(2, "f32")
        # x by the root mean square of the norm before is what is multiplied in 8 bits; and that root.
        self.last_scale, self.last_root = cute.make_fragment(1, "f32"), cute.make_fragment(1, "f32")
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

    def whole(self, values: Sequence[Any], place: int) -> list[Any]:
        """Sums over all lanes of all warps. `place`: where in shared memory, the first of as many."""
        s, places = self.step, range(place, place + len(values))
        values = [across(value, 16, 8, 4, 2, 1) for value in values]
        with cute.when(cute.same(self.lane, 0)):
            for at, value in zip(places, values, strict=True):
                self.whole_sums[self.warp + at * s.warps] = value
        self.meet()
        return [total([self.whole_sums[i + at * s.warps] for i in range(s.warps)]) for at in places]

    def _take(self, wait: int, results: Any) -> list[Any]:
        """The values of words."""
        *values, late = results
        first = cute.both(cute.same(self.late[0], 0), cute.same(late, 1))
        self.late[0] = cute.select(first, cute.scalar(wait, i32), self.late[0])
        return [cute.Scalar(value) for value in values]

    def words(self, wait: int, words: Any, first: Any, count: int, layer: Any) -> list[Any]:
        """Words of the cluster, once they are those of a layer."""
        at = element_address(words, first)
        return self._take(wait, arch.instruction("word.wait", at, layer + 1, results=[f32] * count + [i32], n=count))

    def sum(self, layer: Any, which: int, terms: int) -> list[Any]:
        """The lane's pair of columns of the residual's sums, once all terms are there."""
        at = element_address(self.sums, self.column(layer, which, self.own * 2))
        wait = ADDED if which else PROJECTED
        return self._take(wait, arch.instruction("word.wait_sum", at, terms, results=[f32] * 2 + [i32], n=2))

    def column(self, layer: Any, which: int, column: Any) -> Any:
        s = self.step
        return ((self.set * s.layers + layer) * 2 + which) * s.width + column

    def add(self, layer: Any, which: int, column: Any, value: Any) -> None:
        arch.instruction("word.add", element_address(self.sums, self.column(layer, which, column)), value)

    def tell(self, words: Any, first: Any, block: Any, layer: Any, *values: Any) -> None:
        """Writes words of a block of the cluster."""
        there = arch.instruction("cluster.map", element_address(words, first), block, results=[i32])[0]
        arch.instruction("word.store", there, layer + 1, *values, n=len(values))

    def terms(self, product: str) -> list[str]:
        """What a row's product is made a result with: its bias; in 8 bits its scale, and its sum, which is what the
        mean of x gives."""
        return [f"{product}_{part}" for part in (("bias",) if self.step.folded else ("bias", "scales", "sums"))]

    def of_layer(self, name: str, layer: Any, number: Any, count: int = 1) -> list[Any]:
        """`count` numbers of a vector from number * count on, of a layer."""
        size = {"qkv": 3, "fc": 4}.get(name.split("_")[0], 1) * self.step.width
        read = vector(self.vectors[name], layer * (size // count) + number, count)
        return read if self.vectors[name].dtype == "f32" else [value.to("f32") for value in read]

    def arrive(self, number: Any) -> None:
        """The slot has been read."""
        arch.instruction("warp_sync")
        with cute.when(cute.same(self.lane, 0)):
            self.here.free.arrive(number)

    def normed(self) -> Operand:
        """The warp's columns of x for a product behind a norm. In 8 bits they are as the norm before would have left
        them, so that they are no large numbers."""
        pair = [self.x[0], self.x[1]]
        if not self.step.folded:
            pair = [value * self.gain[i] * self.last_scale[0] for i, value in enumerate(pair)]
        return self.operand(pair, self.step.bits)

    def operand(self, pair: Sequence[Any], bits: int) -> Operand:
        """The warp's columns, of which each lane has its own pair."""
        first = self.warp * COLUMNS
        high, low = split(pair, bits)
        self.pairs[first + pair_of(self.lane)] = high
        self.pairs[first + WARP + pair_of(self.lane)] = low
        arch.instruction("warp_sync")
        made = operand(self.pairs, first, self.lane, bits)
        arch.instruction("warp_sync")
        return made

    def tiles(self, first: Any, count: int, x: Operand, bits: int) -> list[Any]:
        """The products of tiles of 8 rows with the warp's columns of x, two tiles at a time."""
        made, here, each, width = list[Any](), self.here, 16 // bits, self.step.width
        for i in range(0, count, 2):
            two = range(i, min(i + 2, count))
            slots = list(dict.fromkeys(j // each for j in two))
            for slot in slots:
                here.full.wait(first + slot)
            of_warp = self.warp * (ROWS * COLUMNS // 16 if each > 1 else COLUMNS // CHUNK)
            at = [here.chunk(first + j // each) + j % each * (width // each) + of_warp for j in two]
            made += tile_times(here.ring, at, width // CHUNK, self.lane, x, bits)
            arch.instruction("warp_sync")
            with cute.when(cute.same(self.lane, 0)):
                for slot in slots:
                    here.free.arrive(first + slot)
        return made

    def save(self, values: list[Any], place: Any, sums: Sequence[Any]) -> None:
        """Puts a warp's sums of rows where all warps find them, and behind them those that a norm needs."""
        with cute.when(has_row(self.lane)):
            for i, value in enumerate(values):
                self.saved[self.row_place(place, i // 4, self.warp) + i % 4 * ROWS + self.lane // 4] = value
        with cute.when(cute.same(self.lane, 0)):
            i = len(values)
            for j, value in enumerate(sums):
                self.saved[self.row_place(place, i // 4, self.warp) + i % 4 * ROWS + j] = value

    def row_place(self, place: Any, batch: Any, warp: Any) -> Any:
        return ((place * self.batches + batch) * self.step.warps + warp) * WARP

    def row_total(self, place: Any, batch: Any, row: Any) -> Any:
        """A row's sum over all warps."""
        return total([self.saved[self.row_place(place, batch, warp) + row] for warp in range(self.step.warps)])

    def norm(self, place: Any, count: int) -> tuple[Any, Any]:
        """What a sum of x is to be multiplied with behind a norm, and what is to be taken from it for each unit of the
        weight's sum. `save` has put the norm's sums behind `count` tiles."""
        at = count % 4 * ROWS
        square = self.row_total(place, count // 4, at) * (1.0 / self.step.width)
        if self.step.folded:
            return self.rsqrt(square + self.eps), None
        mean = self.row_total(place, count // 4, at + 1) * (1.0 / self.step.width)
        deviation = square - mean * mean + self.eps
        scale = self.rsqrt(deviation)
        factor = scale * self.last_root[0]
        self.last_scale[0], self.last_root[0] = scale, deviation * scale
        return factor, mean * scale

    def result(self, sum_: Any, norm: tuple[Any, Any], terms: Sequence[Any]) -> Any:
        """What a row's product is, from its sum and its `terms`."""
        factor, mean = norm
        if self.step.folded:
            return sum_.fma(factor, terms[0])
        bias, scale, of_mean = terms
        return (sum_ * factor - mean * of_mean).fma(scale, bias)

    def rsqrt(self, value: Any) -> Any:
        return cute.Scalar(arch.instruction("rsqrt", value, results=[f32])[0])

    def sums_of_norm(self) -> list[Any]:
        """Of the warp's columns: of their squares, and of themselves where a mean is to be subtracted."""
        own = [self.x[0], self.x[1]]
        values = [dot(own, own)] if self.step.folded else [dot(own, own), own[0] + own[1]]
        return [across(value, 16, 8, 4, 2, 1) for value in values]
