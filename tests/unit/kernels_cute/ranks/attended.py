"""Attention whose results go to the ranks of their rows, and the product behind it, on the executor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.reference import float64
from kernels_cute.attention.attention import attention
from kernels_cute.attention.attention_walk import Tiles as AttentionTiles
from kernels_cute.products.tiles_sm90 import Tiles
from kernels_cute.ranks.attention import TO_RANKS
from tests.unit.kernels_cute.ranks.products import SMALL, Array, Channel, bf16, f64, maps_of
from toolchain.cute import dsl as cute
from toolchain.cute.executor import TensorMap
from toolchain.cute.executor.launches.ranks import run_ranks

PLAIN = AttentionTiles(keys=32)
OP = "linear_of_own_rows"
SCALE, D = 0.125, 64


def attending(tiles: AttentionTiles = PLAIN) -> cute.Kernel:
    return attention("bf16", tiles, "attention_to_ranks", TO_RANKS)


@dataclass
class Attended:
    """Arrays of what attention makes take turns: a product reads one while the next launch writes the other.

    `heads` of each rank, of `length` tokens in each of `batch` sequences; a residual stream of `n` columns."""

    qkv: Sequence[Sequence[Array]]
    gathered: Sequence[Array]
    weight: Array
    bias: Array
    stream: Array
    squares: Array
    channel: Channel
    tiles: Tiles

    @classmethod
    def of(cls, heads: Sequence[int], batch: int, length: int, n: int, blocks: int, tiles: Tiles = SMALL) -> Attended:
        rng = np.random.default_rng(0)
        ranks, rows = len(heads), batch * length
        qkv = [[bf16(rng.standard_normal((batch, length, own, D))) for _ in range(3)] for own in heads]
        gathered = [bf16(np.full((ranks, rows // ranks, sum(heads) * D), np.nan)) for _ in range(2)]
        weight = bf16(rng.standard_normal((sum(heads) * D, n)))
        start = bf16(rng.standard_normal((rows, n)))
        squares = np.full((ranks, -(-n // (tiles.summed or tiles.n)), rows), np.nan, np.float32)
        return cls(
            qkv, gathered, weight, bf16(rng.standard_normal(n)), np.stack([start] * ranks), squares,
            Channel.of(ranks, blocks), tiles,
        )  # fmt: skip

    def run(
        self, attend: cute.Kernel, product: cute.Kernel, turns: int = 2, tiles: AttentionTiles = PLAIN
    ) -> None:  # fmt: skip
        c, steps = self.channel, list[tuple[cute.Kernel, list[list[Any]]]]()
        for turn in range(turns):
            x, first, second = self.gathered[turn % 2], list[list[Any]](), list[list[Any]]()
            for rank, qkv in enumerate(self.qkv):
                arrays = dict(zip("qkv", qkv, strict=True)) | {"out": x}
                maps = [TensorMap(arrays[said.array], said.box, said.swizzle) for said in TO_RANKS.maps(tiles)]
                first.append([*arrays.values(), SCALE, rank, *maps])
                maps = maps_of(OP, self.tiles, {"x": x, "weight": self.weight, "out": self.stream})
                given = [x, self.weight, self.bias, self.stream, self.squares, c.flags, c.ended, c.state[rank]]
                second.append([*given, rank, *maps])
            steps += [(attend, first), (product, second)]
        shared = [*self.gathered, self.stream, self.squares, c.flags, c.ended]
        run_ranks(steps, (c.flags.shape[2], 1, 1), shared)

    def wanted(self) -> Array:
        """What attention makes of all heads: (rows, G D)."""
        heads = [float64.attention(f64(q), f64(k), f64(v), SCALE) for q, k, v in self.qkv]
        whole = np.concatenate(heads, axis=2)
        return whole.reshape(-1, whole.shape[2] * D)
