"""The warp that brings weights, keys and values, one thread of it: a ring of slots in the order of their use."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from .block import Here, chunk_address
from .lanes import CHUNK, ROWS
from .plan import HEAD, POINTS, RANKS


class Producer:
    """The warp that streams weights, keys and values: one thread of it."""

    def __init__(self, here: Here, weights: dict[str, Any], tokens: Any, keys: Any, values: Any) -> None:
        self.here, self.step, self.weights = here, here.step, weights
        self.tokens, self.keys, self.values = tokens, keys, values

    def run(self) -> None:
        here = self.here
        with cute.when(cute.same(here.lane, 0)):
            here.full.init()
            here.free.init()
            arch.instruction("mbarrier.init_fence")
        arch.instruction("warp_sync")
        arch.instruction("cluster.arrive", atom="release")
        here.mark(0, POINTS - 1)
        with cute.when(cute.same(here.lane, 0)):
            here.either(self._stream)
        arch.instruction("warp_sync")
        arch.instruction("cluster.wait")
        arch.instruction("cluster.arrive", atom="release")
        arch.instruction("cluster.wait")

    def _stream(self, *, head: bool) -> None:
        s, here = self.step, self.here
        steps = s.steps(head=head)
        for layer in cute.range_(s.layers):
            self._layer(layer, layer * steps, head=head)
        for i in cute.range_(s.rounds):
            tile = i * s.blocks + here.block
            with cute.when(cute.less(tile, s.vocabulary // ROWS)):
                self._bring(s.layers * steps + i, (self.tokens, tile * s.width, s.slot, 0))

    def _layer(self, layer: Any, first: Any, *, head: bool) -> None:
        s, here, number = self.step, self.here, first
        brought = list[tuple[tuple[Any, Any, int, int], ...]]()
        if head:
            for which in range(3):
                tile = (layer * 3 + which) * (s.width // ROWS) + here.block
                brought.append(((self.weights["qkv"], tile * s.width, s.slot, 0),))
            row = (layer * s.heads + here.head) * s.positions + here.rank * s.span
            for i, count in enumerate(s.attended):
                at = (row + i * 4 * s.warps) * (HEAD // CHUNK)
                pair = ((self.keys, 0), (self.values, s.width // 2))
                brought.append(tuple((of, at, count * HEAD, into) for of, into in pair))
            brought.append(((self.weights["proj"], (layer * (s.heads * RANKS) + here.block) * s.width, s.slot, 0),))
        tile = layer * (4 * s.width // ROWS) + here.first_unit(head=head) // ROWS
        for name in ("fc", "out"):
            for i in range(s.units[0 if head else 1] // ROWS):
                brought.append(((self.weights[name], (tile + i) * s.width, s.slot, 0),))
        for i, copies in enumerate(brought):
            self._bring(number + i, *copies)
            self.here.mark(layer, i)

    def _bring(self, number: Any, *copies: tuple[Any, Any, int, int]) -> None:
        """Fills a slot: what, its first chunk, how many elements, and how many chunks into the slot."""
        here, flying = self.here, self.step.flying
        here.free.wait(number, free=True)
        if flying:  # what the others ask the L2 cache for would wait behind a burst of loads
            with cute.when(cute.less(flying - 1, number)):
                here.full.wait(number - flying)
        here.full.expect(number, sum(count for _, _, count, _ in copies) * 2)
        for source, first, count, into in copies:
            place, start = chunk_address(here.ring, here.chunk(number) + into), chunk_address(source, first)
            arch.instruction("copy.bulk_load", place, start, here.full.at(number % self.step.slots), n=count * 2)
