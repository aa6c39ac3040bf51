"""What the computing warps of a block have in common, whatever a step is: they wait for each other and for words."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import f32, i32, i64

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from .block import Place, as_number, element_address
from .lanes import WARP

COMPUTE, FOUND = 1, 2  # their barriers


class Team:
    """`late`: the first wait that took too long, or 0. `set`: that of the sums which this launch uses."""

    def __init__(self, here: Place, sums: Any, launches: Any) -> None:
        self.here: Any = here  # with what else blocks of the step have
        self.step, self.sums, self.launches = here.step, sums, launches
        self.warp, self.lane = here.warp, here.lane
        self.late = cute.make_fragment(1, "i32")
        self.launch = as_number(launches[here.block])
        self.set = self.launch % 2

    def clear(self, words: Any, thread: Any, threads: int, count: int, first: Any) -> None:
        for i in range(0, count, threads):
            at = thread + i
            with cute.when(cute.less(at, count)):
                words[at + first] = cute.scalar(0, i64)

    def meet(self, barrier: int = COMPUTE) -> None:
        """The computing warps of the block wait for each other."""
        arch.instruction("barrier", barrier, n=self.step.warps * WARP)

    def take(self, wait: int, results: Any) -> list[Any]:
        """The values of words."""
        *values, late = results
        first = cute.both(cute.same(self.late[0], 0), cute.same(late, 1))
        self.late[0] = cute.select(first, cute.scalar(wait, i32), self.late[0])
        return [cute.Scalar(value) for value in values]

    def words(self, wait: int, words: Any, first: Any, count: int, layer: Any) -> list[Any]:
        """Words of the cluster, once they are those of a layer."""
        at = element_address(words, first)
        return self.take(wait, arch.instruction("word.wait", at, layer + 1, results=[f32] * count + [i32], n=count))

    def tell(self, words: Any, first: Any, block: Any, layer: Any, *values: Any) -> None:
        """Writes words of a block of the cluster."""
        there = arch.instruction("cluster.map", element_address(words, first), block, results=[i32])[0]
        arch.instruction("word.store", there, layer + 1, *values, n=len(values))

    def arrive(self, number: Any) -> None:
        """The slot has been read."""
        arch.instruction("warp_sync")
        with cute.when(cute.same(self.lane, 0)):
            self.here.free.arrive(number)

    def rsqrt(self, value: Any) -> Any:
        return cute.Scalar(arch.instruction("rsqrt", value, results=[f32])[0])
