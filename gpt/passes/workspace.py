"""The memory of a forward pass or a decoding step: the intermediate results that its ops pass on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from toolchain.contract.op import ITEMSIZE
from toolchain.runtime import Allocation, DeviceBuffer, Executor

from ..config import GPTConfig
from .arena import Arena


@dataclass(frozen=True)
class Workspace:
    """Intermediate results of N rows, in one arena, where buffers that are not in use at the same time share memory.
    Buffers used only within the layers of a chunk have M rows, those of the longest chunk."""

    x: DeviceBuffer  # (N, C): the residual stream
    normed: DeviceBuffer  # (N, C)
    qkv: DeviceBuffer  # (M, (H + 2G) D): H heads of queries, and G of keys and of values
    kv: DeviceBuffer  # (2, M, G D): keys and values of a pass without a cache; with learned positions they stay in qkv
    attended: DeviceBuffer  # (M, H D)
    hidden: DeviceBuffer  # (M, F)
    tokens: DeviceBuffer  # (N) i32
    positions: DeviceBuffer  # (N) i32
    starts: DeviceBuffer  # (B) i32: where each sequence's new positions begin
    partial: DeviceBuffer  # (Z, M, C) f32: the parts of a product, Z = 0 where there are none
    squares: DeviceBuffer  # (Z, L) f32: x's sums of squares in Z parts, L >= M; Z = 0 where all norms are launches
    narrow: DeviceBuffer  # (N, C) f8 or i8: rows before a product, where they are rounded to that, else empty
    wide: DeviceBuffer  # (M, F) f8 or i8: the same of the hidden layer
    scales: DeviceBuffer  # (N) f32: their scales
    ones: DeviceBuffer  # (M) f32: the scales of rows that need none; filled by who makes the workspace
    widened: DeviceBuffer  # (2, B P, G D): a layer's keys and values, where the cache has them in 8 bits, else empty

    @property
    def nbytes(self) -> int:
        """Bytes of the whole arena."""
        return self.x.allocation.nbytes

    @property
    def _eighths(self) -> Sequence[tuple[str, DeviceBuffer]]:
        return [(name, getattr(self, name)) for name in ("narrow", "wide", "scales", "ones")]

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
            kv=self.kv.slice(1, 0, min(count, self.kv.shape[1])),
            attended=self.attended.slice(0, 0, count),
            hidden=self.hidden.slice(0, 0, count),
            partial=self.partial.slice(1, 0, count),
            **{name: each.slice(0, 0, min(count, each.shape[0])) for name, each in self._eighths},
        )


Shape = tuple[tuple[int, ...], str]  # and the dtype


def buffers(
    config: GPTConfig,
    storage: str,
    batch: int,
    rows: int,
    chunk: int,
    *,
    parts: int,
    squares: tuple[int, int],
    rounded: str = "",
    widened: int = 0,
) -> Mapping[str, Shape]:
    """Shape and dtype of each buffer of a model's workspace, for N = `rows` rows in B = `batch` sequences. The longest
    chunk has M = `chunk` rows; `partial` has Z = `parts`, and (Z, L) is `squares`. `rounded`: the dtype of 8
    bits to which rows are rounded before a product, if they are. `widened`: positions of all sequences, if their keys
    and values are widened before attention."""
    n, m, c, eighths, all_eighths = rows, chunk, config.n_embd, chunk if rounded else 0, rows if rounded else 0
    queries, keys = config.n_head * config.head_size, config.kv_heads * config.head_size
    return {
        "x": ((n, c), storage),
        "normed": ((n, c), storage),
        "qkv": ((m, queries + 2 * keys), storage),
        "kv": ((2, m if config.positions == "rope" else 0, keys), storage),
        "attended": ((m, queries), storage),
        "hidden": ((m, config.ffn), storage),
        "tokens": ((n,), "i32"),
        "positions": ((n,), "i32"),
        "starts": ((batch,), "i32"),
        "partial": ((parts, m, c), "f32"),
        "squares": (squares, "f32"),
        "narrow": ((all_eighths, c), rounded or storage),
        "wide": ((eighths, config.ffn), rounded or storage),
        "scales": ((all_eighths,), "f32"),
        "ones": ((eighths,), "f32"),
        "widened": ((2, widened, keys), storage),
    }


def nbytes(shape: Shape) -> int:
    sizes, dtype = shape
    return math.prod(sizes) * ITEMSIZE[dtype]


def allocate(executor: Executor, shapes: Mapping[str, Shape], placed: Arena) -> Workspace:
    """A workspace whose buffers lie as `placed` says, in memory of its own."""
    work = views(executor, executor.allocate(placed.nbytes), shapes, placed.offsets)
    if work.ones.shape[0]:
        work.ones.fill(1.0)
    return work


def views(executor: Executor, memory: Allocation, shapes: Mapping[str, Shape], offsets: Mapping[str, int]) -> Workspace:
    """A workspace in `memory`, each buffer from its offset in bytes on."""
    return Workspace(**{name: executor.view(memory, offsets[name], *shape) for name, shape in shapes.items()})
