"""Products of several ranks on the executor, on random numbers, and what they should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kernels_cute.products.linear_sm90 import linear
from kernels_cute.products.tiles_sm90 import Tiles
from kernels_cute.ranks.all_gather import ALL_GATHERED
from kernels_cute.ranks.gather import GATHERED
from kernels_cute.ranks.own_rows import OWN_ROWS
from kernels_cute.ranks.scatter import SCATTERED
from toolchain.cute import dsl as cute
from toolchain.cute.executor import TensorMap
from toolchain.cute.executor.launches.ranks import run_ranks

Array = NDArray[Any]
EPS = 1e-5
SMALL = Tiles(64, 64, 64, 2)
KNOWN = {**SCATTERED, **GATHERED, **ALL_GATHERED, **OWN_ROWS}


def made(op: str, tiles: Tiles = SMALL) -> cute.Kernel:
    return linear("bf16", tiles, op, *KNOWN[op])


def bf16(array: Array) -> Array:
    return array.astype(ml_dtypes.bfloat16)


def f64(array: Array) -> Array:
    return array.astype(np.float64)


def maps_of(op: str, tiles: Tiles, arrays: dict[str, Array]) -> list[TensorMap]:
    epilogue, scheme = KNOWN[op]
    return [TensorMap(arrays[said.array], said.box, said.swizzle) for said in scheme.maps(tiles, epilogue)]


@dataclass
class Channel:
    """`flags` (R, R, B), `ended` (R, R), and the state (B, 2) of each rank."""

    flags: Array
    ended: Array
    state: Sequence[Array]

    @classmethod
    def of(cls, ranks: int, blocks: int) -> Channel:
        flags, ended = np.zeros((ranks, ranks, blocks), np.int32), np.zeros((ranks, ranks), np.int32)
        return cls(flags, ended, [np.zeros((blocks, 2), np.int32) for _ in range(ranks)])


@dataclass
class Scattered:
    """matmul_reduce_scatter of R ranks."""

    x: Sequence[Array]
    weight: Sequence[Array]
    out: Sequence[Array]
    arrived: Array
    channel: Channel

    @classmethod
    def of(cls, ranks: int, m: int, n: int, k: int, blocks: int) -> Scattered:
        rng = np.random.default_rng(0)
        x = [bf16(rng.standard_normal((ranks, m, k))) for _ in range(ranks)]
        weight = [bf16(rng.standard_normal((k, n))) for _ in range(ranks)]
        out = [bf16(np.full((m, n), np.nan)) for _ in range(ranks)]
        arrived = bf16(np.full((ranks, ranks, m, n), np.nan))
        return cls(x, weight, out, arrived, Channel.of(ranks, blocks))

    def run(self, kernel: cute.Kernel, tiles: Tiles = SMALL, launches: int = 2) -> None:
        channel, args = self.channel, list[list[Any]]()
        for rank, (x, weight, out) in enumerate(zip(self.x, self.weight, self.out, strict=True)):
            arrays = {"x": x, "weight": weight, "out": out, "arrived": self.arrived}
            maps = maps_of("matmul_reduce_scatter", tiles, arrays)
            args.append([*arrays.values(), channel.flags, channel.state[rank], rank, *maps])
        blocks = channel.flags.shape[2]
        run_ranks([(kernel, args)] * launches, (blocks, 1, 1), [self.arrived, channel.flags])

    def wanted(self, rank: int) -> Array:
        """The own product is not rounded before the sum, those of the others are."""
        parts = [f64(x[rank]) @ f64(w) for x, w in zip(self.x, self.weight, strict=True)]
        return np.sum([part if s == rank else f64(bf16(part)) for s, part in enumerate(parts)], axis=0)


@dataclass
class Model:
    """Two products of a layer, `turns` times: linear_to_ranks, and rms_linear_of_ranks of its result."""

    x: Sequence[Array]
    weight: Sequence[Array]
    bias: Array
    stream: Array
    squares: Array
    arrived: Array
    weight2: Sequence[Array]
    bias2: Sequence[Array]
    out: Sequence[Array]
    channel: Channel
    tiles: Tiles

    @classmethod
    def of(cls, ranks: int, piece: int, n: int, k: int, blocks: int, tiles: Tiles = SMALL) -> Model:
        rng = np.random.default_rng(0)
        rows, columns = ranks * piece, 72

        def drawn(*shape: int) -> list[Array]:
            return [bf16(rng.standard_normal(shape)) for _ in range(ranks)]

        start = bf16(rng.standard_normal((rows, n)))
        squares = np.full((ranks, -(-n // (tiles.summed or tiles.n)), rows), np.nan, np.float32)
        return cls(
            drawn(rows, k), drawn(k, n), bf16(rng.standard_normal(n)), np.stack([start] * ranks), squares,
            bf16(np.full((ranks, ranks, piece, n), np.nan)), drawn(n, columns), drawn(columns), drawn(rows, columns),
            Channel.of(ranks, blocks), tiles,
        )  # fmt: skip

    def run(self, to: cute.Kernel, of: cute.Kernel, turns: int = 2) -> None:
        c, sent = self.channel, list[list[Any]]()
        for rank in range(len(self.x)):
            arrays = {"x": self.x[rank], "weight": self.weight[rank], "out": self.stream, "arrived": self.arrived}
            maps = maps_of("linear_to_ranks", self.tiles, arrays)
            given = [self.x[rank], self.weight[rank], self.bias, self.stream, self.squares, self.arrived]
            sent.append([*given, c.flags, c.ended, c.state[rank], rank, *maps])
        self._launch([(to, sent), (of, self._reading(sends=1))] * turns)

    def read(self, of: cute.Kernel) -> None:
        """The second product again, of rows that are not new."""
        self._launch([(of, self._reading(sends=0))])

    def _reading(self, sends: int) -> list[list[Any]]:
        c, made = self.channel, list[list[Any]]()
        for rank in range(len(self.x)):
            arrays = {"x": self.stream, "weight": self.weight2[rank], "out": self.out[rank]}
            given = [self.stream, self.squares, self.weight2[rank], self.bias2[rank], self.out[rank]]
            maps = maps_of("rms_linear_of_ranks", self.tiles, arrays)
            made.append([*given, c.ended, c.state[rank], EPS, rank, sends, *maps])
        return made

    def _launch(self, steps: Sequence[tuple[cute.Kernel, list[list[Any]]]]) -> None:
        shared = [self.stream, self.squares, self.arrived, self.channel.flags, self.channel.ended]
        run_ranks(steps, (self.channel.flags.shape[2], 1, 1), shared)

    def wanted(self, start: Array, turns: int = 2) -> Array:
        """The residual stream (M, N)."""
        added = sum(f64(x) @ f64(w) for x, w in zip(self.x, self.weight, strict=True)) + f64(self.bias)
        return f64(start) + turns * added

    def normed(self, stream: Array, rank: int) -> Array:
        root = np.sqrt((stream * stream).mean(axis=1, keepdims=True) + EPS)
        return stream @ f64(self.weight2[rank]) / root + f64(self.bias2[rank])


@dataclass
class Multiplied:
    """all_gather_matmul of R ranks, in two launches whose rows differ."""

    x: Sequence[Array]
    weight: Sequence[Array]
    out: Sequence[Array]
    gathered: Array
    counts: Array
    turns: Sequence[Array]

    @classmethod
    def of(cls, ranks: int, m: int, n: int, k: int, blocks: int) -> Multiplied:
        rng = np.random.default_rng(0)
        x = [bf16(rng.standard_normal((m, k))) for _ in range(ranks)]
        weight = [bf16(rng.standard_normal((k, n))) for _ in range(ranks)]
        out = [bf16(np.full((ranks, m, n), np.nan)) for _ in range(ranks)]
        gathered = bf16(np.full((ranks, ranks, m, k), np.nan))
        turns = [np.zeros((blocks, 2), np.int32) for _ in range(ranks)]
        return cls(x, weight, out, gathered, np.zeros((ranks, ranks), np.int32), turns)

    def run(self, kernel: cute.Kernel, tiles: Tiles = SMALL, launches: int = 2) -> None:
        args = list[list[Any]]()
        for rank, (x, weight, out) in enumerate(zip(self.x, self.weight, self.out, strict=True)):
            arrays = {"x": x, "weight": weight, "out": out, "gathered": self.gathered}
            maps = maps_of("all_gather_matmul", tiles, arrays)
            args.append([*arrays.values(), self.counts, self.turns[rank], rank, *maps])
        run_ranks([(kernel, args)] * launches, (len(self.turns[0]), 1, 1), [self.gathered, self.counts])
