"""The warps that compute a step of eight texts. A warp has 64 columns of the residual stream of all of them."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout

from ..decode.block import element_address
from ..decode.lanes import CHUNK, COLUMNS, ROWS, across, floats, raw, total
from ..decode.plan import ADDED, HEAD, PROJECTED
from ..decode.products import Operand
from ..decode.team import Team
from .block import Here
from .plan import TEXTS, UNITS
from .products import as_bits, columns, times, total_of

OF_WARP = COLUMNS * TEXTS  # sums of a warp's columns


class TextsWarps(Team):
    """`x`: of text `lane // 4` the lane's 16 columns of the residual stream (see products.py)."""

    def __init__(self, here: Here, vectors: dict[str, Any], sums: Any, launches: Any, eps: Any) -> None:
        """`vectors`: biases, and what else there is a number of for each row or column of a layer's weight."""
        super().__init__(here, sums, launches)
        s = here.step
        self.vectors, self.eps, self.position = vectors, eps, here.position
        self.chunk, self.text, self.quarter = self.lane % CHUNK, self.lane // 4, self.lane % 4
        # Sums over a warp's columns of rows, and behind them what a norm needs, of each text. So many apart that the
        # lanes of `save` write to different banks.
        self.apart = UNITS + 4
        self.saved = cute.shared_tensor("f32", Layout(s.warps * TEXTS * self.apart))
        self.weighed = cute.shared_tensor("f32", Layout(s.warps * HEAD))  # values of a warp's positions
        self.weights = cute.shared_tensor("f32", Layout(s.warps * 2))  # their maximum, and the sum of their weights
        self.whole_sums = cute.shared_tensor("f32", Layout(2 * TEXTS * s.warps))
        # Biases, as they are stored, read long before they are added: of the lane's columns, and of the rows whose sums
        # over all warps it adds up.
        self.proj_bias, self.out_bias, self.next_out_bias = (cute.make_fragment(CHUNK, "i32") for _ in range(3))
        self.qkv_bias, self.fc_bias = (cute.make_fragment(1, "bf16") for _ in range(2))
        self.x = cute.make_fragment(2 * CHUNK, "f32")

    def own(self, tensor: Any, row: Any) -> list[Any]:
        """The lane's 16 columns of a row of C numbers in bf16, as 8 registers."""
        first = row * (self.step.width // CHUNK) + self.warp * (COLUMNS // CHUNK) + self.quarter
        return [word for half in range(2) for word in raw(tensor, first + half * 4, CHUNK)]

    def whole(self, values: Any, place: int) -> Any:
        """The sum of a lane's values over all lanes of its text, in all warps."""
        s, first = self.step, place * TEXTS * self.step.warps
        (value,) = across([total(values)], 1, 2)
        with cute.when(cute.same(self.quarter, 0)):
            self.whole_sums[first + self.warp * TEXTS + self.text] = value
        self.meet()
        return total([self.whole_sums[first + warp * TEXTS + self.text] for warp in range(s.warps)])

    def squares(self) -> Any:
        """The sum of squares of the warp's columns of the lane's text."""
        return across([total([self.x[i] * self.x[i] for i in range(2 * CHUNK)])], 1, 2)[0]

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

    def add(self, layer: Any, which: int, made: list[Any]) -> None:
        """Adds sums of the warp's 8 columns of the projected ones: of column `lane // 4`, texts 2 q and 2 q + 1."""
        row, column = self.lane // 4, self.here.rank * (self.step.width // 8) + self.warp * ROWS
        of_warp = self.sums_of(layer, which) + column // COLUMNS * OF_WARP
        step = of_warp + (column % COLUMNS // 32 * 4 + row // 2) * COLUMNS + column % 32 // ROWS * 2 + row % 2
        for i, value in enumerate(made):
            arch.instruction("word.add", element_address(self.sums, step + (self.quarter * 2 + i) * 8), value)

    def sums_of(self, layer: Any, which: int) -> Any:
        s = self.step
        return ((self.set * s.layers + layer) * 2 + which) * (s.width * TEXTS)

    def operand_of(self, wait: int, words: Any, first: Any, layer: Any) -> Operand:
        """64 numbers of all texts that the cluster has been told, in bf16. `first`: the number of the first word."""
        at = element_address(words, first + self.lane * 2)
        found = arch.instruction("word.wait_across", at, layer + 1, results=[f32] * 8 + [i32], n=8)
        words = [as_bits(value) for value in self.take(wait, found)]
        return [words[i : i + 2] for i in range(0, 8, 2)]

    def tiles(self, first: Any, count: int, x: list[Operand]) -> list[list[Any]]:
        """The products of tiles of 8 rows with the warp's columns of x, two tiles at a time. The next two are read
        before these are multiplied."""
        here, width = self.here, self.step.width
        pairs = [range(i, min(i + 2, count)) for i in range(0, count, 2)]

        def read(two: range) -> list[Operand]:
            for tile in two:
                here.full.wait(first + tile)
            chunk = self.warp * (COLUMNS // CHUNK)
            return [columns(here.ring, here.chunk(first + tile) + chunk, width // CHUNK, self.lane) for tile in two]

        made, ahead = list[list[Any]](), read(pairs[0])
        for i, two in enumerate(pairs):
            now, ahead = ahead, read(pairs[i + 1]) if i + 1 < len(pairs) else []
            made += total_of(times(now, x), len(two))
            arch.instruction("warp_sync")
            with cute.when(cute.same(self.lane, 0)):
                for tile in two:
                    here.free.arrive(first + tile)
        return made

    def save(self, values: list[list[Any]], squares: Any = None) -> None:
        """Puts a warp's sums of rows where all warps find them, and behind UNITS of them those of squares. A `meet`
        stands between it and earlier reads."""
        for i, tile in enumerate(values):
            for j, value in enumerate(tile):
                self.keep(i, j, value)
        if squares is not None:
            with cute.when(cute.same(self.quarter, 0)):
                self.saved[self._row_of(self.warp, self.text) + UNITS] = squares

    def keep(self, tile: int, j: int, value: Any) -> None:
        """Puts a warp's sum of the lane's row of a tile, of text 2 q + j, there."""
        self.saved[self._row_of(self.warp, self.quarter * 2 + j) + tile * ROWS + self.lane // 4] = value

    def row_total(self, text: Any, row: Any) -> Any:
        """A row's sum over all warps."""
        return total([self.saved[self._row_of(warp, text) + row] for warp in range(self.step.warps)])

    def norm(self, text: Any) -> Any:
        """What a sum of x is to be multiplied with behind a norm."""
        return self.rsqrt(self.row_total(text, UNITS) * (1.0 / self.step.width) + self.eps)

    def _row_of(self, warp: Any, text: Any) -> Any:
        return (text + warp * TEXTS) * self.apart
