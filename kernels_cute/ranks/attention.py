"""`attention_to_ranks`: attention of a rank's heads, whose results TMA stores to the ranks that have their rows.

A tile of results takes the place of its queries in shared memory: a warp writes the rows that it alone has read. Nobody
is told: what reads the results is a launch behind this one, and all ranks meet there.
"""

from __future__ import annotations

from typing import Any

from toolchain.contract.artifact import TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

from ..attention import attention as one_gpu
from ..attention.attention_walk import QUERIES, ROW, WARPGROUP, Place, Tiles, Walk
from .meeting import PIECE

MEET = 3  # the number of the first of the warpgroups' barriers, behind those of their turns


def maps(tiles: Tiles) -> tuple[TensorMap, ...]:
    """Those of attention, and of the results as they are stored."""
    if tiles.head != ROW:
        raise UsageError(f"a head of {tiles.head} elements is not stored to ranks", hint=f"head={ROW}")
    return (*one_gpu.maps(tiles), TensorMap("out", (1, PIECE, ROW), 128))


class ToRanks(one_gpu.Consumer):
    """Stores tiles of queries to the ranks of their rows. `out`: (R, Q, C)."""

    def __init__(
        self, out: Any, scale: Any, shared: one_gpu.Shared, worker: Any, t: Tiles, rank: Any, out_map: Any
    ) -> None:  # fmt: skip
        super().__init__(out, scale, shared, worker, t)
        self.out_map, self.barrier = out_map, MEET + self.group
        self.head = rank * (out.shape[2] // ROW) // out.shape[0]  # the own first one
        self.mma = cute.make_tiled_mma(cute.find(f"wgmma.m64n{ROW}k16.f32.{out.dtype}"), (t.consumers, 1, 1))
        self.copy = cute.make_tiled_copy_like(cute.CopyAtom("stmatrix.x4", 16), self.mma, "c")

    def run(self, walk: Walk) -> None:
        self.tiles = walk.tiles  # of a sequence
        super().run(walk)

    def queries_read(self, place: Place) -> None:
        """Results are to take their place."""

    def store(self, place: Place) -> None:
        t, tile = self.t, self.shared.tiles[0][None, (None, 0), place.turn % 2]
        made = cute.make_fragment(self.o.layout, self.out.dtype)
        cute.convert(self.o, made)
        whole = Layout((t.rows, ROW))
        order = cute.retile(self.copy.partition("S", whole)[1], self.mma.partition("c", whole)[1], made.layout)
        cute.copy(self.copy, cute.with_layout(made, order), cute.partition(self.copy, "D", tile, self.worker))
        arch.instruction("fence.proxy_async")
        arch.instruction("barrier", self.barrier, n=WARPGROUP)
        with cute.when(self.chief):
            # A block that begins anew stores the same rows again
            arch.instruction("copy.bulk_wait_group_all", n=0)
            per = self.out.shape[1] // t.rows
            column = (self.head + place.head) * ROW
            number = place.sequence * self.tiles + place.tile
            for piece in range(QUERIES // PIECE):
                at = self.group * (QUERIES // PIECE) + piece
                source = cute.address(cute.local_tile(tile, (PIECE, ROW), (at, 0)))
                row = number % per * t.rows + at * PIECE
                arch.instruction("copy.tma_store", source, self.out_map, column, row, number // per)
            arch.instruction("copy.bulk_commit_group")
            arch.instruction("copy.bulk_wait_group", n=0)
        self.free(0, place.turn)


TO_RANKS = one_gpu.Scheme(maps, (cute.Number32(),), ToRanks, out_rank=3)
