"""The memory of a forward pass or a step: what its ops hand to one another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from toolchain.entry import ITEMSIZE
from toolchain.runtime import DeviceBuffer, Executor

from . import arena


@dataclass(frozen=True)
class Workspace:
    """Intermediate results of N rows, in one arena: those that do not live at the same time share its memory. Those
    that only a chunk's layers see have M rows, as many as the longest chunk."""

    x: DeviceBuffer  # (N, C): the residual stream
    normed: DeviceBuffer  # (N, C)
    qkv: DeviceBuffer  # (M, 3C)
    attended: DeviceBuffer  # (M, C)
    hidden: DeviceBuffer  # (M, 4C)
    tokens: DeviceBuffer  # (N) i32
    positions: DeviceBuffer  # (N) i32
    starts: DeviceBuffer  # (B) i32: where each sequence's new positions begin
    partial: DeviceBuffer  # (Z, M, C) f32: the parts of a product, Z = 0 where there are none
    squares: DeviceBuffer  # (Z, L) f32: x's sums of squares in Z parts, L >= M; Z = 0 where all norms are launches

    @property
    def nbytes(self) -> int:
        """Of the whole arena."""
        return self.x.allocation.nbytes

    def chunk(self, first: int, count: int) -> Workspace:
        """What `count` rows use, from row `first` on."""
        stop = first + count
        return replace(
            self,
            x=self.x.slice(0, first, stop),
            normed=self.normed.slice(0, first, stop),
            tokens=self.tokens.slice(0, first, stop),
            positions=self.positions.slice(0, first, stop),
            qkv=self.qkv.slice(0, 0, count),
            attended=self.attended.slice(0, 0, count),
            hidden=self.hidden.slice(0, 0, count),
            partial=self.partial.slice(1, 0, count),
        )


def allocate(
    executor: Executor, storage: str, width: int, batch: int, rows: int, chunk: int, *, parts: int,
    squares: tuple[int, int],
) -> Workspace:  # fmt: skip
    """Of N = `rows` rows of C = `width` columns in B = `batch` sequences, whose longest chunk has M = `chunk` rows; Z =
    `parts`, (Z, L) = `squares`. qkv and what attention makes of it are gone when the MLP runs, so they share their
    memory with its hidden layer."""
    n, m, c = rows, chunk, width
    #               shape, dtype, and the steps of a layer from its first write to its last read
    wanted: Mapping[str, tuple[tuple[int, ...], str, int, int]] = {
        "x": ((n, c), storage, 0, 9),
        "normed": ((n, c), storage, 1, 9),
        "qkv": ((m, 3 * c), storage, 2, 3),
        "attended": ((m, c), storage, 3, 4),
        "hidden": ((m, 4 * c), storage, 6, 7),
        "tokens": ((n,), "i32", 0, 9),
        "positions": ((n,), "i32", 0, 9),
        "starts": ((batch,), "i32", 0, 9),
        "partial": ((parts, m, c), "f32", 7, 8),
        "squares": (squares, "f32", 0, 9),
    }
    lifetimes = {
        name: arena.Span(math.prod(shape) * ITEMSIZE[dtype], first, last)
        for name, (shape, dtype, first, last) in wanted.items()
    }
    placed = arena.plan(lifetimes)
    memory = executor.allocate(placed.nbytes)
    return Workspace(
        **{
            name: executor.view(memory, placed.offsets[name], shape, dtype)
            for name, (shape, dtype, _, _) in wanted.items()
        }
    )
