"""The warps that compute a step of eight texts. A warp has 64 columns of the residual stream of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout

from ..decode.block import element_address
from ..decode.lanes import CHUNK, COLUMNS, ROWS, WARP, across, floats, of_lane, raw, total
from ..decode.plan import ADDED, HEAD, PROJECTED
from ..decode.products import Operand
from ..decode.rows import Rows, Terms
from .block import Here
from .plan import TEXTS, UNITS
from .products import as_bits, columns, operand, times, total_of

OF_WARP = COLUMNS * TEXTS  # sums of a warp's columns


class TextsWarps(Rows):
    """`x`: of text `lane // 4` the lane's 16 columns of the residual stream (see products.py)."""

    def __init__(self, here: Here, vectors: dict[str, Any], sums: Any, launches: Any, eps: Any) -> None:
        super().__init__(here, vectors, sums, launches, eps)
        s = here.step
        self.position = here.position
        self.chunk, self.text, self.quarter = self.lane % CHUNK, self.lane // 4, self.lane % 4
        # Sums over a warp's columns of rows, and behind them what a norm needs, of each text. So many apart that the
        # lanes of `save` write to different banks.
        self.apart = UNITS + 4
        self.saved = cute.shared_tensor("f32", Layout(s.warps * TEXTS * self.apart))
        self.weighed = cute.shared_tensor("f32", Layout(s.warps * HEAD))  # values of a warp's positions
        self.weights = cute.shared_tensor("f32", Layout(s.warps * 2))  # their maximum, and the sum of their weights
        self.whole_sums = cute.shared_tensor("f32", Layout(3 * TEXTS * s.warps))
        # Of the next use, read long before it, as they are stored: what a row whose sums over all warps the lane adds
        # up is made a result with; biases of the lane's columns; scales of the column that it projects to; the norms'
        # weights of the warp's columns, two for each lane.
        self.of_qkv, self.of_fc = Terms(self, "qkv", 1), Terms(self, "fc", 1)
        self.proj_bias, self.out_bias, self.next_out_bias = (cute.make_fragment(CHUNK, "i32") for _ in range(3))
        self.proj_scale, self.out_scale = (cute.make_fragment(1, "f32") for _ in range(2))
        self.gain_1, self.gain_2 = (cute.make_fragment(1, "i32") for _ in range(2))
        # x by the root mean square of the norm before is what is multiplied in 8 bits: of each text; and the root, of
        # those texts whose sums the warp adds up.
        self.scales = cute.shared_tensor("f32", Layout(TEXTS))
        self.roots = cute.make_fragment(-(-TEXTS // s.warps), "f32")
        self.x = cute.make_fragment(2 * CHUNK, "f32")
        if s.logit_bits == 8:
            self.head_scales = cute.shared_tensor("f32", Layout(s.rounds * UNITS))

    def text_of(self, turn: int) -> Any:
        """The text whose sums over all warps the warp adds up, of several in turns."""
        return self.warp + turn * self.step.warps

    def own(self, tensor: Any, row: Any) -> list[Any]:
        """The lane's 16 columns of a row of C numbers in bf16, as 8 registers."""
        first = row * (self.step.width // CHUNK) + self.warp * (COLUMNS // CHUNK) + self.quarter * 2
        return [word for chunk in range(2) for word in raw(tensor, first + chunk, CHUNK)]

    def pair_of_layer(self, name: str, layer: Any) -> Any:
        """Two of the warp's columns of a vector in bf16, of a layer: a register of each lane."""
        return raw(self.vectors[name], layer * (self.step.width // 2) + self.warp * WARP + self.lane, 2)[0]

    def projected(self) -> Any:
        """The first of the warp's 8 columns of those that the block projects to."""
        return self.here.rank * (self.step.width // 8) + self.warp * ROWS

    def projection(self, number: Any, part: int) -> Operand:
        """The warp's rows of 64 numbers of a part of a slot."""
        s = self.step
        tile = COLUMNS * ROWS * s.bits // 128  # chunks
        first = self.here.chunk(number) + part * (s.slot // s.tiles) + self.warp * tile
        return columns(self.here.ring, first, CHUNK, self.lane, s.bits)

    def whole(self, values: Sequence[Any], place: int) -> list[Any]:
        """Sums of a lane's values over all lanes of its text, in all warps. `place`: where in shared memory, the first
        of as many."""
        s, places = self.step, range(place, place + len(values))

        def at(place: int, warp: Any) -> Any:
            return (warp + place * s.warps) * TEXTS + self.text

        values = across(values, 1, 2)
        with cute.when(cute.same(self.quarter, 0)):
            for one, value in zip(places, values, strict=True):
                self.whole_sums[at(one, self.warp)] = value
        self.meet()
        return [total([self.whole_sums[at(one, warp)] for warp in range(s.warps)]) for one in places]

    def own_sums(self) -> list[Any]:
        """Of the lane's columns: of their squares, and of themselves where a mean is to be subtracted."""
        x = [self.x[i] for i in range(2 * CHUNK)]
        return [total([one * one for one in x])] + ([] if self.step.folded else [total(x)])

    def sums_of_norm(self) -> list[Any]:
        """The same of all of the warp's columns of the lane's text."""
        return across(self.own_sums(), 1, 2)

    def normed(self, gain: Any) -> list[Operand]:
        """The warp's columns of x for a product behind a norm. In 8 bits they are as the norm before would have left
        them, so that they are no large numbers. `gain`: the norm's weight."""
        x = [self.x[i] for i in range(2 * CHUNK)]
        if not self.step.folded:
            scale = self.scales[self.text]
            words = [of_lane(gain[0], self.quarter * CHUNK + i) for i in range(CHUNK)]
            x = [one * weight * scale for one, weight in zip(x, floats(words), strict=True)]
        return operand(x, self.step.bits)

    def add_sums(self, layer: Any, which: int, bias: Any) -> None:
        """Adds the sums of all clusters, once all are there, and a bias to the residual stream."""
        at = element_address(self.sums, self.sums_of(layer, which) + self.warp * OF_WARP + self.lane * 2)
        terms, count, wait = self.step.heads, 2 * CHUNK, ADDED if which else PROJECTED
        # One word first, the same for all lanes: blocks that all read all words again and again fill the L2 cache up.
        last = element_address(self.sums, self.sums_of(layer, which) + self.warp * OF_WARP + (OF_WARP - 1))
        self.take(wait, arch.instruction("word.wait_sum", last, terms, results=[f32, i32], n=1))
        found = arch.instruction("word.wait_sum_across", at, terms, results=[f32] * count + [i32], n=count)
        values, biases = self.take(wait, found), floats([bias[i] for i in range(CHUNK)])
        for i, (value, one) in enumerate(zip(values, biases, strict=True)):
            self.x[i] = self.x[i] + value + one

    def add(self, layer: Any, which: int, made: list[Any], scale: Any) -> None:
        """Adds sums of the warp's 8 columns of the projected ones: of column `lane // 4`, texts 2 q and 2 q + 1."""
        row, column = self.lane // 4, self.projected()
        of_warp = self.sums_of(layer, which) + column // COLUMNS * OF_WARP
        step = of_warp + (column % 16 // 2 + row // 2) * COLUMNS + column % COLUMNS // 16 * 2 + row % 2
        if not self.step.folded:
            made = [value * scale[0] for value in made]
        for i, value in enumerate(made):
            arch.instruction("word.add", element_address(self.sums, step + (self.quarter * 2 + i) * 8), value)

    def sums_of(self, layer: Any, which: int) -> Any:
        s = self.step
        return ((self.set * s.layers + layer) * 2 + which) * (s.width * TEXTS)

    def operand_of(self, wait: int, words: Any, first: Any, layer: Any) -> Operand:
        """64 numbers of all texts that the cluster has been told, in 16 bits. `first`: the number of the first word."""
        at = element_address(words, first + self.lane * 2)
        found = arch.instruction("word.wait_across", at, layer + 1, results=[f32] * 8 + [i32], n=8)
        words = [as_bits(value) for value in self.take(wait, found)]
        return [words[i : i + 2] for i in range(0, 8, 2)]

    def read_tiles(self, at: Sequence[Any], bits: int) -> list[Operand]:
        return [columns(self.here.ring, first, self.step.width // CHUNK, self.lane, bits) for first in at]

    def multiply(self, tiles: list[Operand], x: list[Operand], bits: int) -> list[list[Any]]:
        return total_of(times(tiles, x, bits), len(tiles))

    def save(self, values: list[list[Any]], sums: Sequence[Any] = ()) -> None:
        """Puts a warp's sums of rows where all warps find them, and behind UNITS of them those that a norm needs. A
        `meet` stands between it and earlier reads."""
        for i, tile in enumerate(values):
            for j, value in enumerate(tile):
                self.keep(i, j, value)
        if sums:
            with cute.when(cute.same(self.quarter, 0)):
                for i, value in enumerate(sums):
                    self.saved[self._row_of(self.warp, self.text) + UNITS + i] = value

    def keep(self, tile: int, j: int, value: Any) -> None:
        """Puts a warp's sum of the lane's row of a tile, of text 2 q + j, there."""
        self.saved[self._row_of(self.warp, self.quarter * 2 + j) + tile * ROWS + self.lane // 4] = value

    def row_total(self, text: Any, row: Any) -> Any:
        """A row's sum over all warps."""
        return total([self.saved[self._row_of(warp, text) + row] for warp in range(self.step.warps)])

    def norm(self, turn: int) -> tuple[Any, Any]:
        """What `result` wants of the norm of a text, whose sums the warp adds up."""
        text, count = self.text_of(turn), 1.0 / self.step.width
        square = self.row_total(text, UNITS) * count
        if self.step.folded:
            return self.rsqrt(square + self.eps), None
        mean = self.row_total(text, UNITS + 1) * count
        made, scale, self.roots[turn] = self.behind_norm(square, mean, self.roots[turn])
        with cute.when(cute.same(self.lane, 0)):
            self.scales[text] = scale
        return made

    def _row_of(self, warp: Any, text: Any) -> Any:
        return (text + warp * TEXTS) * self.apart
