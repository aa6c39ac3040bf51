"""A ring of mbarriers: how threads that load and threads that compute wait for each other."""

from __future__ import annotations

import copy
from typing import Any

from xdsl.dialects.builtin import i32

from ..layout import Layout
from . import address, local_tile, shared_tensor
from .arch import instruction


class Barriers:
    """A ring of mbarriers in shared memory. `count`: the arrivals that complete a phase. `rings`: so many of them, of
    which this is the first and `of` gives each."""

    def __init__(self, stages: int, count: int, rings: int = 1) -> None:
        self.stages, self.count, self.rings = stages, count, rings
        self.words = shared_tensor("i64", Layout(stages * rings), align=8)
        self.begin: Any = 0

    def of(self, ring: Any) -> Barriers:
        """The ring of a number, which may be one of the kernel."""
        found = copy.copy(self)
        found.begin = ring * self.stages
        return found

    def at(self, stage: Any) -> Any:
        """The pointer to the mbarrier of a stage."""
        return address(local_tile(self.words, (1,), (self.begin + stage,)))

    def init(self) -> None:
        """Of all rings, for one thread; the block synchronises behind it."""
        for stage in range(self.stages * self.rings):
            instruction("mbarrier.init", self.at(stage), n=self.count)

    def wait(self, number: Any, *, free: bool = False) -> None:
        """Waits for the phase that step `number` of the ring ends; with `free`, for the one before."""
        phase = (number // self.stages + (1 if free else 0)) % 2
        instruction("mbarrier.wait", self.at(number % self.stages), phase)

    def arrive(self, number: Any) -> None:
        """This thread arrives at step `number`."""
        instruction("mbarrier.arrive", self.at(number % self.stages))

    def arrive_in(self, block: Any, number: Any, *, read: bool = False) -> None:
        """This thread arrives at step `number` of the ring that a block of the cluster has, by its rank. `read`: behind
        reads alone, which takes far less time."""
        there = instruction("cluster.map", self.at(number % self.stages), block, results=[i32])
        instruction("mbarrier.arrive_remote_read" if read else "mbarrier.arrive_remote", *there)

    def expect(self, number: Any, size_bytes: int) -> None:
        """This thread arrives, and so many bytes are to come by TMA."""
        instruction("mbarrier.arrive_expect_tx", self.at(number % self.stages), n=size_bytes)
