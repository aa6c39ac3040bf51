"""The warp that brings weights, keys and values, one thread of it: a ring of slots in the order of their use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from .block import Place, chunk_address
from .lanes import ROWS
from .plan import CLUSTER, HEAD


class Stream(ABC):
    """A warp that fills the ring: one thread of it."""

    def __init__(self, here: Place, weights: dict[str, Any], cache: Any, position: Any) -> None:
        """`weights`: also what makes the logits. `cache`: the tensor map of keys and values. `position`: that of the
        new token, which so many stand before."""
        self.here: Any = here  # with what else blocks of the step have
        self.step, self.weights, self.cache, self.position = here.step, weights, cache, position

    def run(self) -> None:
        here = self.here
        with cute.when(cute.same(here.lane, 0)):
            here.full.init()
            here.free.init()
            arch.instruction("mbarrier.init_fence")
        arch.instruction("warp_sync")
        arch.instruction("cluster.arrive", atom="release")
        with cute.when(cute.same(here.lane, 0)):
            self.fill()
        arch.instruction("warp_sync")
        arch.instruction("cluster.wait")
        arch.instruction("cluster.arrive", atom="release")
        arch.instruction("cluster.wait")

    @abstractmethod
    def fill(self) -> None:
        """Fills slots, in the order of their use."""

    def rows(self, name: str, parts: Sequence[Any], chunks: int, number: Any) -> None:
        """Fills a slot with parts of a weight, of so many chunks each."""
        s, here = self.step, self.here
        self.wait(number)
        here.full.expect(number, len(parts) * chunks * 16)
        for i, part in enumerate(parts):
            place = chunk_address(here.ring, here.chunk(number) + i * chunks)
            start, signal = chunk_address(self.weights[name], part * chunks), here.full.at(number % s.slots)
            arch.instruction("copy.bulk_load", place, start, signal, n=chunks * 16)

    def wait(self, number: Any) -> None:
        """Waits until the slot is free."""
        here, flying = self.here, self.step.flying
        here.free.wait(number, free=True)
        if flying:  # what the others ask the L2 cache for would wait behind a burst of loads
            with cute.when(cute.less(flying - 1, number)):
                here.full.wait(number - flying)


class Producer(Stream):
    """The stream of a step for one sequence."""

    def fill(self) -> None:
        self.here.either(self._stream)

    def _stream(self, *, head: bool) -> None:
        s, here = self.step, self.here
        steps = s.steps(head=head)
        for layer in cute.range_(s.layers):
            self._layer(layer, layer * steps, head=head)
        for i in cute.range_(s.rounds):
            tile = i * s.blocks + here.block
            with cute.when(cute.less(tile, s.vocabulary // s.logit_rows)):
                self.rows("logits", [tile], s.slot, s.layers * steps + i)

    def _layer(self, layer: Any, first: Any, *, head: bool) -> None:
        s, here = self.step, self.here
        slots = list[Callable[[Any], None]]()
        if head:
            of_block = [
                (layer * 3 + which) * (s.heads * HEAD // ROWS) + here.block * s.turns + turn
                for turn in range(s.turns)
                for which in range(3)
            ]
            for i in range(0, 3 * s.turns, s.tiles):
                slots.append(partial(self.rows, "qkv", of_block[i : i + s.tiles], s.slot // s.tiles))
            for i in range(s.kv_slots):
                slots.append(partial(self._positions, layer, i))
            first_part = layer * (s.heads * CLUSTER) + here.block * s.turns
            for i in range(s.turns):
                slots.append(partial(self.rows, "proj", [first_part + i], s.slot // s.tiles))
        first_unit = layer * (s.hidden // s.rows) + here.first_unit(head=head) // s.rows
        for name in ("fc", "out"):
            for i in range(s.units[0 if head else 1] // s.rows):
                slots.append(partial(self.rows, name, [first_unit + i], s.slot))
        for i, fill in enumerate(slots):
            fill(first + i)

    def _positions(self, layer: Any, i: int, number: Any) -> None:
        """Fills a slot with keys and values of some positions, unless all of them are yet to come."""
        s, here = self.step, self.here
        counts = s.attended[i * s.times : (i + 1) * s.times]
        first = here.rank * s.span + i * s.times * s.together
        filled = cute.less(first, self.position)
        self.wait(number)
        with cute.when(cute.invert(filled)):
            here.full.arrive(number)
        with cute.when(filled):
            here.full.expect(number, 2 * sum(counts) * HEAD * s.cache_bits // 8)
            for (j, count), which in product(enumerate(counts), range(2)):
                for box in range(count // s.box):
                    into = (2 * j + which) * (s.width // (2 * s.times)) + box * (s.box * HEAD * s.cache_bits // 128)
                    place = chunk_address(here.ring, here.chunk(number) + into)
                    at = first + j * s.together + box * s.box
                    signal = here.full.at(number % s.slots)
                    arch.instruction("copy.tma_load", place, self.cache, signal, here.head * HEAD, at, which, layer)
