"""The warp that brings weights, keys and values of eight texts: a ring of slots in the order of their use."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from ..decode.block import chunk_address
from ..decode.lanes import ROWS
from ..decode.plan import CLUSTER, HEAD
from ..decode.stream import Stream
from .plan import PARTS, UNITS


class TextsStream(Stream):
    """Keys and values are those of the block's text, as far as its cache is filled."""

    def fill(self) -> None:
        s, here = self.step, self.here
        for layer in cute.range_(s.layers):
            self._layer(layer, layer * here.steps)
        for i in cute.range_(s.rounds * s.at_once):
            tile = i * s.blocks + here.block
            with cute.when(cute.less(tile, s.vocabulary // s.logit_rows)):
                self.rows("logits", [tile], s.slot, here.steps * s.layers + i)

    def _layer(self, layer: Any, first: Any) -> None:
        s, here = self.step, self.here
        of_block = [(layer * 3 + which) * (s.width // ROWS) + here.block for which in range(3)]
        self._parts("qkv", of_block, first)
        first = first + s.qkv_slots
        for i in cute.range_(here.attended):
            self._positions(layer, i, first + i)
        first = first + here.attended
        self._parts("proj", [layer * s.blocks + here.block], first)
        units, slots = layer * (4 * s.width // s.rows) + here.block * (UNITS // s.rows), UNITS // s.rows
        for i in range(slots):
            self.rows("fc", [units + i], s.slot, first + 1 + i)
        groups = (layer * s.heads + here.head) * PARTS
        self._parts("out", [(groups + i) * CLUSTER + here.rank for i in range(PARTS)], first + 1 + slots)

    def _parts(self, name: str, parts: list[Any], first: Any) -> None:
        """Fills slots with parts of a weight, each as large as 8 rows of x."""
        s = self.step
        for i in range(0, len(parts), s.tiles):
            self.rows(name, parts[i : i + s.tiles], s.slot // s.tiles, first + i // s.tiles)

    def _positions(self, layer: Any, i: Any, number: Any) -> None:
        """Fills a slot with keys and values of some positions; zeros behind the end of the cache."""
        s, here = self.step, self.here
        self.wait(number)
        here.full.expect(number, 2 * s.together * HEAD * 2)
        for which in range(2):
            place = chunk_address(here.ring, here.chunk(number) + which * (s.width // 2))
            signal, at = here.full.at(number % s.slots), i * s.together
            arch.instruction("copy.tma_load", place, self.cache, signal, here.head * HEAD, at, here.rank, which, layer)
