"""A block of the decode step: where a thread is, what its shared memory holds, and the addresses of both memories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.layout import Layout

from .lanes import CHUNK, WARP
from .plan import FAR, HEAD, Step


@dataclass(frozen=True)
class Cache:
    """Keys and values (L, 2, P, C) in one dimension, and P. `scales`: of those in 8 bits, (L, 2, H, P) in one
    dimension."""

    numbers: Any
    positions: Any
    scales: Any = None


class Place:
    """Where a thread is, and what every block has in shared memory."""

    def __init__(self, s: Any) -> None:
        """`s`: the sizes of a step."""
        thread = arch.thread_idx()[0]
        self.step, self.block = s, arch.block_idx()[0]
        self.warp, self.lane = thread // WARP, thread % WARP
        self.rank, self.head = self.block % s.cluster, self.block // s.cluster
        self.ring = cute.shared_tensor("bf16", Layout(s.slots * s.slot * CHUNK))
        self.full, self.free = Barriers(s.slots, 1), Barriers(s.slots, s.warps)
        self.told = cute.shared_tensor("i64", Layout(3 * HEAD))  # q, k and v of the head

    def chunk(self, number: Any) -> Any:
        """The first chunk of the slot that a step of the stream is in."""
        return number % self.step.slots * self.step.slot


class Here(Place):
    """A block of a step for one sequence."""

    def __init__(self, s: Step) -> None:
        super().__init__(s)
        self.with_head = cute.less(self.head, s.heads)
        self.parts = cute.shared_tensor("i64", Layout(s.cluster * FAR))  # of the head's result, from each block
        self.columns = cute.shared_tensor("i64", Layout(s.width))  # of the MLP, from each block

    def first_unit(self, *, head: bool) -> Any:
        """The block's first hidden unit."""
        few, many = self.step.units
        before = self.step.heads * self.step.cluster
        return self.block * few if head else (self.block - before) * many + before * few

    def either(self, do: Callable[..., None]) -> None:
        """Does the same in blocks with a head and in those without, if there are any, each with its own numbers."""
        if self.step.clusters == self.step.heads:
            do(head=True)
            return
        with cute.when(self.with_head):
            do(head=True)
        with cute.when(cute.invert(self.with_head)):
            do(head=False)


def flat(tensor: Any) -> Any:
    """An array without gaps as one dimension, whatever its sizes are."""
    return cute.view(cute.iterator(tensor), Layout(1 << 30))


def chunk_address(tensor: Any, chunk: Any) -> Any:
    """The pointer to a chunk of 16 bytes."""
    return cute.address(cute.local_tile(tensor, (128 // cute.BITS[tensor.dtype],), (chunk,)))


def element_address(tensor: Any, number: Any) -> Any:
    """The pointer to an element."""
    return cute.address(cute.local_tile(tensor, (1,), (number,)))


def as_number(value: Any) -> Any:
    """An i32 in a register as a number."""
    return cute.number(value.value)


def as_scalar(value: Any) -> Any:
    """A number as an i32 in a register."""
    return cute.scalar(value, i32)
