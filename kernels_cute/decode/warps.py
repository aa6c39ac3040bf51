"""The warps that compute: what they tell each other by shared memory and by words, and products of slots with x."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import gcd
from typing import Any

from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout

from .block import Cache, Here, as_number, as_scalar, element_address
from .lanes import CHUNK, COLUMNS, ROWS, WARP, Across, across, dot, floats, of_lane, pair_of, raw, total, vector
from .plan import ADDED, CLUSTER, HEAD, PROJECTED
from .products import Operand, columns_times, has_row, operand, split, tile_columns
from .rows import Rows, Terms


class Warps(Rows):
    """`x`: the lane's pair of columns of the residual stream."""

    def __init__(
        self, here: Here, vectors: dict[str, Any], sums: Any, launches: Any, eps: Any, position: Any, cache: Cache
    ) -> None:  # fmt: skip
        super().__init__(here, vectors, sums, launches, eps)
        s = here.step
        self.position, self.cache = position, cache
        self.chunk = self.lane % CHUNK
        self.own = self.warp * WARP + pair_of(self.lane)  # the number of the lane's pair
        self.batches = -(-(max(*s.units, 3 * ROWS * s.turns) // ROWS + 1) // 4)
        # Sums over a warp's columns: of rows of fc in turns, and of those of q, k and v, in clusters of 8 at a place of
        # their own. A row has one of each warp. So many apart that lanes that read at one time find theirs in different
        # banks.
        self.apart = s.warps if s.warps < 4 else -(-s.warps // 4) // 2 * 8 + 4
        self.saved = cute.shared_tensor("f32", Layout((2 * self.batches + (s.turns == 1)) * self.apart * WARP))
        self.weighed = cute.shared_tensor("f32", Layout(s.warps * HEAD))  # values of a warp's positions
        self.weights = cute.shared_tensor("f32", Layout(s.warps * 2))  # their maximum, and the sum of their weights
        # Pairs of 16 bits and of what is rounded off: of the warps' columns of the residual stream, then of hidden
        # units; of the head's result.
        self.pairs = cute.shared_tensor("i32", Layout(s.warps * COLUMNS))
        self.merged = cute.shared_tensor("i32", Layout(HEAD))
        self.whole_sums = cute.shared_tensor("f32", Layout(3 * s.warps))
        # Of the next use, read before the wait for sums, as they are stored: what a row of q, k, v or a hidden
        # unit is made with; biases of the lane's pair of columns, two bf16 in a register, and the norms' weights of it;
        # scales of the columns whose sums the lane adds.
        parts = -(-CLUSTER // s.warps)
        self.of_qkv, self.of_fc = Terms(self, "qkv", parts), Terms(self, "fc", -(-max(s.units) // WARP))
        self.proj_bias, self.out_bias, self.next_out_bias, self.gain_1, self.gain_2 = (
            cute.make_fragment(1, "i32") for _ in range(5)
        )
        self.proj_scales, self.out_scale = cute.make_fragment(s.tiles, "f32"), cute.make_fragment(1, "f32")
        # x by the root mean square of the norm before is what is multiplied in 8 bits; and that root.
        self.last_scale, self.last_root = cute.make_fragment(1, "f32"), cute.make_fragment(1, "f32")
        self.x = cute.make_fragment(2, "f32")
        if s.cache_bits == 8:
            self.newest = cute.shared_tensor("f32", Layout(HEAD + 4))  # the new value, and the score of the new key
            self.key_scales, self.value_scales = (cute.make_fragment(len(s.attended), "f32") for _ in range(2))
            for held in (self.key_scales, self.value_scales):
                cute.fill(held, 0.0)

    @contextmanager
    def lane_again(self) -> Generator[None]:
        """In blocks of many warps, which have few registers, asks the warp for the lane's number. The compiler cannot
        know that it stays the same, so it does not compute addresses from it ahead of all layers and keep them. The
        warp's own number is not asked for: ptxas would take lanes that it is a condition of for divided."""
        if self.step.turns == 1:
            yield
            return
        before = self.lane, self.chunk, self.own
        lane = as_number(of_lane(as_scalar(self.lane), self.lane)) % WARP
        self.lane, self.chunk, self.own = lane, lane % CHUNK, self.warp * WARP + pair_of(lane)
        yield
        self.lane, self.chunk, self.own = before

    def whole(self, values: Sequence[Any], place: int) -> list[Any]:
        """Sums over all lanes of all warps. `place`: where in shared memory, the first of as many."""
        s, places = self.step, range(place, place + len(values))
        values = across(values, 16, 8, 4, 2, 1)
        with cute.when(cute.same(self.lane, 0)):
            for at, value in zip(places, values, strict=True):
                self.whole_sums[self.warp + at * s.warps] = value
        self.meet()
        return [total([self.whole_sums[i + at * s.warps] for i in range(s.warps)]) for at in places]

    def sum(self, layer: Any, which: int, terms: int) -> list[Any]:
        """The lane's pair of columns of the residual's sums, once all terms are there."""
        at = element_address(self.sums, self.column(layer, which, self.own * 2))
        wait = ADDED if which else PROJECTED
        return self.take(wait, arch.instruction("word.wait_sum", at, terms, results=[f32] * 2 + [i32], n=2))

    def add(self, layer: Any, which: int, column: Any, value: Any) -> None:
        arch.instruction("word.add", element_address(self.sums, self.column(layer, which, column)), value)

    def column(self, layer: Any, which: int, column: Any) -> Any:
        s = self.step
        return ((self.set * s.layers + layer) * 2 + which) * s.width + column

    def own_of_layer(self, name: str, layer: Any) -> Any:
        """Those of the lane's pair of columns, two bf16 in a register."""
        return raw(self.vectors[name], layer * (self.size_of(name) // 2) + self.own, 2)[0]

    def read_tiles(self, at: Sequence[Any], bits: int) -> list[Any]:
        return tile_columns(self.here.ring, at, self.step.width // CHUNK, self.lane, bits)

    def multiply(self, tiles: list[Any], x: Operand, bits: int) -> list[Any]:
        return columns_times(tiles, x, bits)

    def normed(self, gain: Any, sums: Across) -> Operand:
        """The warp's columns of x for a product behind a norm. In 8 bits they are as the norm before would have left
        them, so that they are no large numbers. `gain`: the norm's weight; `sums`: that are added up meanwhile."""
        pair = [self.x[0], self.x[1]]
        if not self.step.folded:
            pair = [x * one * self.last_scale[0] for x, one in zip(pair, floats([gain[0]]), strict=True)]
        return self.operand(pair, self.step.bits, sums)

    def operand(self, pair: Sequence[Any], bits: int, meanwhile: Across | None = None) -> Operand:
        """The warp's columns, of which each lane has its own pair."""
        first = self.warp * COLUMNS
        high, low = split(pair, bits)
        self.pairs[first + pair_of(self.lane)] = high
        self.pairs[first + WARP + pair_of(self.lane)] = low
        if meanwhile:
            meanwhile.step()
        arch.instruction("warp_sync")
        made = operand(self.pairs, first, self.lane, bits)
        arch.instruction("warp_sync")
        return made

    def save(self, values: list[Any], place: Any, sums: Sequence[Any] = (), first: int = 0) -> None:
        """Puts a warp's sums of rows where all warps find them, from tile `first` on, and behind them those that a norm
        needs."""
        with cute.when(has_row(self.lane)):
            for i, value in enumerate(values):
                self.keep(place, first + i, value)
        if not sums:
            return
        with cute.when(cute.same(self.lane, 0)):
            i = first + len(values)
            for j, value in enumerate(sums):
                self.saved[self._place(place, i * ROWS + j) + self.warp] = value

    def save_products(self, first: Any, count: int, x: Operand, place: Any, sums: Across) -> None:
        """Those of `count` tiles of rows with x, from slot `first` on, and behind them a norm's sums. Many warps have
        few registers each, and wait for each other's loads: they save those of two tiles after the other two."""
        s = self.step
        if s.turns == 1:
            self.save(self.tiles(first, count, x, s.bits, sums), place, sums.made())
            return
        for pair in cute.range_(count // 2):
            made = self.tiles(first + pair * 2, 2, x, s.bits)
            with cute.when(has_row(self.lane)):
                for i, value in enumerate(made):
                    self.keep(place, pair * 2 + i, value)
        odd = count % 2
        self.save(self.tiles(first + count - 1, 1, x, s.bits) if odd else [], place, sums.made(), count - odd)

    def keep(self, place: Any, tile: Any, value: Any) -> None:
        """Puts a warp's sum of the lane's row of a tile there."""
        self.saved[self._place(place, tile * ROWS + self.lane // 4) + self.warp] = value

    def _place(self, place: Any, row: Any) -> Any:
        return (place * (self.batches * WARP) + row) * self.apart

    def row_total(self, place: Any, row: Any) -> Any:
        """A row's sum over all warps."""
        warps, width, first = self.step.warps, gcd(self.apart, 4), self._place(place, row)
        whole = warps // width
        read = [one for i in range(whole) for one in vector(self.saved, first // width + i, width)]
        return total([*read, *(self.saved[first + i] for i in range(whole * width, warps))])

    def norm(self, place: Any, count: int) -> tuple[Any, Any]:
        """What a sum of x is to be multiplied with behind a norm, and what is to be taken from it for each unit of the
        weight's sum. `save` has put the norm's sums behind `count` tiles."""
        square = self.row_total(place, count * ROWS) * (1.0 / self.step.width)
        if self.step.folded:
            return self.rsqrt(square + self.eps), None
        mean = self.row_total(place, count * ROWS + 1) * (1.0 / self.step.width)
        made, self.last_scale[0], self.last_root[0] = self.behind_norm(square, mean, self.last_root[0])
        return made

    def sums_of_norm(self) -> Across:
        """Of the warp's columns: of their squares, and of themselves where a mean is to be subtracted."""
        own = [self.x[0], self.x[1]]
        return Across([dot(own, own)] if self.step.folded else [dot(own, own), own[0] + own[1]])
