"""How tiles of a product for sm_90a leave registers, and how a residual comes in.

A warpgroup lays a part of a tile's columns at a time into shared memory, from where TMA stores them in the background.
A residual's tile comes the other way, by TMA into the part of shared memory that the result is then written to: a
thread that only loads fills the parts of the next tiles while this one is multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.dsl.values import TensorValue
from toolchain.cute.layout import Layout, size

from .epilogues import Operands, Place, Values
from .tiles_sm90 import ATOM, SWIZZLE, WARPGROUP, Tiles

STORE = 1  # the number of the first of two barriers of the block; 0 is that of all threads
WARP = 32
At = tuple[Any, Any]


@dataclass(frozen=True)
class Part:
    """Some columns of a tile that a warpgroup writes. `part`: which of the tile's; `at`: its row and column among parts
    of m x `row`; `number`: counted over all parts that go through this warpgroup's ring; `consumer`: the number of the
    warpgroup; `worker`: that of the thread among those of a tile; `first`: true in one thread of the warpgroup."""

    part: int
    at: At
    number: Any
    consumer: Any
    worker: Any
    first: Any


class Store:
    """Writes parts of a tile's columns through shared memory, by TMA, in the background. Raises UsageError."""

    def __init__(self, dtype: str, t: Tiles, out_map: Any) -> None:
        self.t, self.out_map = t, out_map
        self.mma = cute.make_tiled_mma(cute.find(f"wgmma.m64n{t.row}k16.f32.bf16"), (t.groups, 1, 1))  # as sums lie
        self.narrow = cute.BITS[dtype] == 8
        atom = cute.CopyAtom("universal.b16", 8) if self.narrow else cute.CopyAtom("stmatrix.x4", 16)
        self.copy = cute.make_tiled_copy_like(atom, self.mma, "c")
        self.swizzle = cute.Swizzle(2, 4, 3) if self.narrow or t.halved else SWIZZLE  # of rows of 64 or 128 bytes
        layout = Layout((t.m, t.row, t.parts * t.rings), (t.row, 1, t.m * t.row))
        self.tiles = cute.shared_tensor(dtype, layout, swizzle=self.swizzle)

    def init(self) -> None:
        """For one thread; the block synchronises behind it."""

    def load(self, thread: Any, tile_of: Callable[[Any], At], turns: Any) -> None:
        """What threads of the first warpgroup do beside its first thread."""

    def start(self, consumer: Any, first: Any) -> None:
        """What a warpgroup does before its first tile. `consumer`, `first`: as a Part has them."""

    def before(self, row: Any, first: Any) -> None:
        """What a warpgroup does before the product of a tile in a row of tiles."""

    def knows(self, p: Part, operands: Operands) -> Operands:
        """The operands, and what else the epilogue is to know of a tile."""
        del p
        return operands

    def finish(self, consumer: Any, first: Any) -> None:
        """Behind a warpgroup's last tile: shared memory goes when the block ends."""
        del consumer
        with cute.when(first):
            arch.instruction("copy.bulk_wait_group_all", n=0)

    def place(self, p: Part, shape: At) -> Place:
        """Where the part's sums lie in the output."""
        return Place(self.mma, (self.t.m, self.t.row), p.at, shape, p.worker)

    def begin(self, p: Part) -> None:
        """Waits until the part's shared memory may be written."""
        with cute.when(p.first):
            arch.instruction("copy.bulk_wait_group", n=self.t.parts - 1)
        self.meet(p)

    def __call__(self, values: Any, p: Part) -> None:
        self.begin(p)
        tile = self.tile(p)
        if self.narrow:
            cute.copy(self.copy, values, cute.partition(self.mma, "C", tile, p.worker))
        else:
            part = cute.partition(self.copy, "D", tile, p.worker)
            cute.copy(self.copy, cute.with_layout(values, self.order("S", self.copy, values.layout)), part)
        arch.instruction("fence.proxy_async")
        self.meet(p)
        self.hand_over(p, tile)

    def hand_over(self, p: Part, tile: TensorValue) -> None:
        """Begins to store a part, which all threads of the warpgroup have written."""
        with cute.when(p.first):
            rows = self.t.m if self.t.apart else ATOM
            begin = 0 if self.t.apart else p.consumer
            source = cute.address(cute.local_tile(tile, (rows, self.t.row), (begin, 0)))
            self.send(source, p.at[1] * self.t.row, p.at[0] * self.t.m + begin * rows)
            arch.instruction("copy.bulk_commit_group")

    def send(self, source: Any, column: Any, row: Any) -> None:
        """For one thread: begins to copy the rows that a warpgroup wrote to their place in the output."""
        arch.instruction("copy.tma_store", source, self.out_map, column, row)

    def end(self, p: Part) -> None:
        """Behind a part."""

    def tile(self, p: Part) -> TensorValue:
        """The shared memory of a part."""
        return self.tiles[None, None, self.buffer(p)]

    def buffer(self, p: Part) -> Any:
        whole = self.t.n // self.t.row % self.t.parts == 0  # each tile begins with the first place
        place = (p.part if whole else p.number) % self.t.parts
        return place + (p.consumer * self.t.parts if self.t.apart else 0)

    def order(self, side: str, copy: Any, layout: Layout) -> Layout:
        """The registers of a part's sums, or of values beside them, in the order in which a copy takes them."""
        whole = Layout((self.t.m, self.t.row))
        return cute.retile(copy.partition(side, whole)[1], self.mma.partition("c", whole)[1], layout)

    def meet(self, p: Part) -> None:
        """The threads of a warpgroup wait for each other."""
        arch.instruction("barrier", p.consumer + STORE, n=WARPGROUP)


class StoreOver(Store):
    """Writes parts over those of a residual, which TMA has brought there. Each ring has its own thread that loads."""

    def __init__(self, dtype: str, t: Tiles, out_map: Any, residual_map: Any) -> None:
        super().__init__(dtype, t, out_map)
        self.residual_map = residual_map
        self.lag = min(t.parts - 1, 1)  # parts that are being stored while the next is computed
        self.full, self.free = Barriers(t.parts, 1, t.rings), Barriers(t.parts, t.groups, t.rings)
        self.copy_in = cute.make_tiled_copy_like(cute.CopyAtom("ldmatrix.x4", 16), self.mma, "c")

    def init(self) -> None:
        self.full.init()
        self.free.init()

    def load(self, thread: Any, tile_of: Callable[[Any], At], turns: Any) -> None:
        t, parts = self.t, self.t.n // self.t.row
        for ring in range(t.rings):
            full, free = self.full.of(ring), self.free.of(ring)
            with cute.when(cute.same(thread, (ring + 1) * WARP)):
                self.start_loading()
                for turn in cute.range_(ring, turns, t.rings):
                    row, column = tile_of(turn)
                    for part in range(parts):
                        number = turn // t.rings * parts + part
                        stage = number % t.parts
                        free.wait(number, free=True)
                        self.bring(full, number, ring * t.parts + stage, t.place(column, part) * t.row, row)

    def start_loading(self) -> None:
        """Before a ring's first part, for the thread that loads it."""

    def bring(self, full: Barriers, number: Any, buffer: Any, column: Any, row: Any) -> None:
        """For one thread: begins to load a part of a row of tiles into its place in shared memory."""
        full.expect(number, self.t.part_bytes)
        target = cute.address(self.tiles[None, None, buffer])
        signal = full.at(number % self.t.parts)
        arch.instruction("copy.tma_load", target, self.residual_map, signal, column, row * self.t.m)

    def place(self, p: Part, shape: At) -> Place:
        return _Brought(self.mma, (self.t.m, self.t.row), p.at, shape, p.worker, brought=lambda: self._residual(p))

    def begin(self, p: Part) -> None:
        """Nothing to wait for: the residual has come, and a warp writes only what it has read itself."""

    def end(self, p: Part) -> None:
        """Says which parts may be loaded anew, as TMA has stored them: the one before this, and the last of a tile, for
        which a warpgroup whose product is next does not wait yet."""
        if p.part or not self.lag:
            self._give_back(p, self.lag)
        if self.lag and self.t.apart and p.part == self.t.n // self.t.row - 1:
            self._give_back(p, 0)

    def _give_back(self, p: Part, running: int) -> None:
        with cute.when(p.first):
            arch.instruction("copy.bulk_wait_group", n=running)
            self.free.of(self._ring(p)).arrive(p.number - running)

    def buffer(self, p: Part) -> Any:
        return self._ring(p) * self.t.parts + p.number % self.t.parts

    def _ring(self, p: Part) -> Any:
        return p.consumer if self.t.apart else 0

    def _residual(self, p: Part) -> Values:
        """What a thread has of the residual, as f32 in the order of its sums."""
        self.arrived(p)
        return self.read(p, self.tile(p))

    def arrived(self, p: Part) -> None:
        """Waits until a part has come."""
        if self.lag and not self.t.apart and p.part == 0:
            with cute.when(cute.both(p.first, cute.less(0, p.number))):  # the last part of the tile before
                arch.instruction("copy.bulk_wait_group", n=0)
                self.free.of(0).arrive(p.number - 1)
        self.full.of(self._ring(p)).wait(p.number)

    def read(self, p: Part, tile: TensorValue) -> Values:
        """What a thread has of a part in shared memory, as f32 in the order of its sums."""
        held = cute.make_fragment(
            Layout(self.mma.partition("c", Layout((self.t.m, self.t.row)))[1].shape), self.tiles.dtype
        )
        part = cute.partition(self.copy_in, "S", tile, p.worker)
        cute.copy(self.copy_in, part, cute.with_layout(held, self.order("D", self.copy_in, held.layout)))
        return [held[i].to("f32") for i in range(size(held.layout))]


@dataclass(frozen=True)
class _Brought(Place):
    """A place whose residual lies in shared memory."""

    brought: Callable[[], Values] = list

    def read(self, tensor: TensorValue) -> Values:  # noqa: ARG002 - it is the residual
        return self.brought()
