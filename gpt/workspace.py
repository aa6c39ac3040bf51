"""The memory of a forward pass or a decoding step: the intermediate results that its ops pass on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from toolchain.contract.entry import ITEMSIZE
from toolchain.runtime import Allocation, DeviceBuffer, Executor

from .arena import Arena


@dataclass(frozen=True)
class Workspace:
    """Intermediate results of N rows, in one arena, where buffers that are not in use at the same time share memory.
    Buffers used only within the layers of a chunk have M rows, those of the longest chunk."""

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
        """Bytes of the whole arena."""
        return self.x.allocation.nbytes

    def chunk(self, first: int, count: int) -> Workspace:
        """The workspace of the `count` rows from row `first` on."""
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


Shape = tuple[tuple[int, ...], str]  # and the dtype


def buffers(
    storage: str, width: int, batch: int, rows: int, chunk: int, *, parts: int, squares: tuple[int, int]
) -> Mapping[str, Shape]:
    """Shape and dtype of each buffer of a workspace, for N = `rows` rows of C = `width` columns in B = `batch`
    sequences. The longest chunk has M = `chunk` rows; `partial` has Z = `parts`, and (Z, L) is `squares`."""
    n, m, c = rows, chunk, width
    return {
        "x": ((n, c), storage),
        "normed": ((n, c), storage),
        "qkv": ((m, 3 * c), storage),
        "attended": ((m, c), storage),
        "hidden": ((m, 4 * c), storage),
        "tokens": ((n,), "i32"),
        "positions": ((n,), "i32"),
        "starts": ((batch,), "i32"),
        "partial": ((parts, m, c), "f32"),
        "squares": (squares, "f32"),
    }


def nbytes(shape: Shape) -> int:
    sizes, dtype = shape
    return math.prod(sizes) * ITEMSIZE[dtype]


def allocate(executor: Executor, shapes: Mapping[str, Shape], placed: Arena) -> Workspace:
    """A workspace whose buffers lie as `placed` says, in memory of its own."""
    return views(executor, executor.allocate(placed.nbytes), shapes, placed.offsets)


def views(executor: Executor, memory: Allocation, shapes: Mapping[str, Shape], offsets: Mapping[str, int]) -> Workspace:
    """A workspace in `memory`, each buffer from its offset in bytes on."""
    return Workspace(**{name: executor.view(memory, offsets[name], *shape) for name, shape in shapes.items()})
