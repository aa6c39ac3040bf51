"""A block of the decode step: where a thread is, what its shared memory holds, and the addresses of both memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import i32, i64

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.layout import Layout

from .lanes import CHUNK, WARP
from .plan import FAR, HEAD, POINTS, RANKS, Step


class Here:
    """Where a thread is, and the block's shared memory. `marks`: for the clock."""

    def __init__(self, s: Step, marks: Any = None) -> None:
        self.marks = marks
        thread = arch.thread_idx()[0]
        self.step, self.block = s, arch.block_idx()[0]
        self.warp, self.lane = thread // WARP, thread % WARP
        self.rank, self.head = self.block % RANKS, self.block // RANKS
        self.with_head = cute.less(self.head, s.heads)
        self.ring = cute.shared_tensor("bf16", Layout(s.slots * s.slot))
        self.full, self.free = Barriers(s.slots, 1), Barriers(s.slots, s.warps)
        self.told = cute.shared_tensor("i64", Layout(3 * HEAD))  # q, k and v of the head
        self.parts = cute.shared_tensor("i64", Layout(RANKS * FAR))  # of the head's result, from each block
        self.apart = (
            s.width // RANKS + 2
        )  # 16 bytes more than C / 8 words, so that blocks' words are in different banks
        self.columns = cute.shared_tensor("i64", Layout(RANKS * self.apart))  # of the MLP, from each block

    def first_unit(self, *, head: bool) -> Any:
        """The block's first hidden unit."""
        few, many = self.step.units
        before = self.step.heads * RANKS
        return self.block * few if head else (self.block - before) * many + before * few

    def either(self, do: Callable[..., None]) -> None:
        """Does the same in blocks with a head and in those without, each with its own numbers."""
        with cute.when(self.with_head):
            do(head=True)
        with cute.when(cute.invert(self.with_head)):
            do(head=False)

    def mark(self, layer: Any, point: int) -> None:
        """Notes the clock of the warp."""
        if self.marks is None:
            return
        s = self.step
        place = ((self.block * s.layers + layer) * (s.warps + 1) + self.warp) * POINTS + point
        with cute.when(cute.same(self.lane, 0)):
            self.marks[place] = cute.Scalar(arch.instruction("clock", results=[i64])[0])

    def chunk(self, number: Any) -> Any:
        """The first chunk of the slot that a step of the stream is in."""
        return number % self.step.slots * self.step.width


def chunk_address(tensor: Any, chunk: Any) -> Any:
    """The pointer to a chunk."""
    return cute.address(cute.local_tile(tensor, (CHUNK,), (chunk,)))


def element_address(tensor: Any, number: Any) -> Any:
    """The pointer to an element."""
    return cute.address(cute.local_tile(tensor, (1,), (number,)))


def as_number(value: Any) -> Any:
    """An i32 in a register as a number."""
    return cute.number(value.value)


def as_scalar(value: Any) -> Any:
    """A number as an i32 in a register."""
    return cute.scalar(value, i32)
