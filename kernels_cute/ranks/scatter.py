"""Products whose sums over K are shared out to several ranks: each gets the parts of all for its piece of the rows.

A block computes tiles of the other ranks' pieces first and stores each, rounded, by TMA to `arrived` of the rank that
it is for, while the next one is multiplied. Its own tiles come last. To these it adds what has arrived for them, in the
order of the ranks.

`matmul_reduce_scatter` writes the sum to its own memory. `linear_to_ranks` adds it to the residual stream there, with a
bias, and stores the rows' sums of squares to all ranks; `rms_linear_of_ranks` sends the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolchain.contract.artifact import MAX_SHARED, TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.dsl.values import TensorValue
from toolchain.cute.layout import Layout, size
from toolchain.errors import UsageError

from ..products.epilogues import Epilogue, Operands, Place, Values, add_bias
from ..products.linear import ROW
from ..products.linear_sm90 import Scheme
from ..products.rms import no_sums, sum_squares
from ..products.store_sm90 import STORE, WARP, At, Part, StoreOver
from ..products.tiles_sm90 import BYTES, HALF, WARPGROUP, Tiles
from .meeting import PIECE, Pieces, Stacked, Waits, place_of, sent
from .squares import OWN, write_squares

WALK = "walk"  # an operand that a tile adds: where it lies
SENDER = 3  # the warp of the first warpgroup whose first thread stores; those before it load
MEETINGS = 2  # of two blocks in a launch: both have begun it, and all that one has for the other is stored


def maps(t: Tiles, epilogue: Epilogue) -> tuple[TensorMap, ...]:
    """The tensor maps behind the op's parameters: of x, the weight, the output, and what arrives, as it is read and as
    it is stored, and of 32 columns of the weight if tiles have such. The residual stream is read as it is stored."""
    stream = isinstance(epilogue, Shared) and epilogue.stream
    x, out = ((t.m, t.k), (1, t.m, t.row)) if stream else ((1, t.m, t.k), (t.m, t.row))
    row = t.row * 2  # bytes of a row of a part
    made = [
        TensorMap("x", x, BYTES), TensorMap("weight", (t.k, ROW), BYTES), TensorMap("out", out, row),
        TensorMap("arrived", (1, 1, t.m, t.row), row), TensorMap("arrived", (1, 1, PIECE, t.row), row),
    ]  # fmt: skip
    if t.halved:
        made.append(TensorMap("weight", (t.k, HALF), BYTES))
    return tuple(made)


class Scatter(StoreOver):
    """Stores tiles of other ranks to them, and own ones over what has arrived, which TMA brings. A thread of its own
    stores, so that those that multiply never wait for a link. `operands`: of the kernel. Raises UsageError."""

    brings = 1  # tiles for each own one: what has arrived

    def __init__(self, dtype: str, t: Tiles, maps_: Sequence[Any], walk: Pieces, operands: Operands) -> None:
        out_map, self.arrived_map, self.piece_map = maps_
        super().__init__(dtype, t, out_map, self.arrived_map)
        self.walk, self.operands = walk, operands
        self.free = Barriers(t.parts, 1, t.rings)
        self.ready, self.done = Barriers(t.parts, t.groups, t.rings), Barriers(1, t.consumers)
        layout = Layout((t.m, t.row, t.parts * t.rings), (t.row, 1, t.m * t.row))
        self.more = [cute.shared_tensor(dtype, layout, swizzle=self.swizzle) for _ in range(1, self.brings)]
        used = t.stages * t.stage_bytes + self.brings * t.rings * t.parts * t.part_bytes
        if used + 16 * (t.stages + 2 * t.rings * t.parts) > MAX_SHARED:
            raise UsageError(f"{t} takes {used} bytes of shared memory", hint="fewer stages or parts")

    def init(self) -> None:
        super().init()
        self.ready.init()
        self.done.init()

    def load(self, thread: Any, tile_of: Callable[[Any], At], turns: Any) -> None:
        super().load(thread, tile_of, turns)
        with cute.when(cute.same(thread, SENDER * WARP)):
            self._send_all(tile_of, turns)

    def start_loading(self) -> None:
        self.joined = cute.make_fragment(1, "i32")
        self.joined[0] = cute.scalar(0, "i32")

    def bring(self, full: Barriers, number: Any, buffer: Any, column: Any, row: Any) -> None:
        """Of an own tile what has arrived, once all that is for this block has."""
        walk, t, signal = self.walk, self.t, full.at(number % self.t.parts)
        own = walk.is_own(row)
        with cute.when(cute.both(own, _not_yet(self.joined))):
            state = self.operands["state"]
            waits, came = Waits(state, walk.block), cute.number(state[walk.block, 0].value)
            for rank in walk.others():
                place = place_of(self.operands["flags"], walk.rank, rank, walk.block)
                waits.wait(place, came + MEETINGS, rank)
            arch.instruction("fence.proxy_async_global")
            self.joined[0] = cute.scalar(1, "i32")
        with cute.when(own):
            full.expect(number, t.part_bytes * self.brings)
            target, at = cute.address(self.tiles[None, None, buffer]), row % walk.down * t.m
            where = (column, at, walk.first_other, walk.rank)
            arch.instruction("copy.tma_load", target, self.arrived_map, signal, *where)
            for tensor in self.more:
                target = cute.address(tensor[None, None, buffer])
                arch.instruction("copy.tma_load", target, self.out_map, signal, column, row * t.m, walk.rank)
        with cute.when(cute.invert(own)):
            full.arrive(number)

    def place(self, p: Part, shape: At) -> Place:
        def brought(which: int) -> Values:
            tile = self.tile(p) if which == 0 else self.more[which - 1][None, None, self.buffer(p)]
            return self.read(p, tile)

        mine = self.mma, (self.t.m, self.t.row), p.at, shape, p.worker
        return PieceOfTile(*mine, arrived=lambda: self.arrived(p), brought=brought)

    def arrived(self, p: Part) -> None:
        self.full.of(self._ring(p)).wait(p.number)

    def knows(self, p: Part, operands: Operands) -> Operands:
        return {**operands, OWN: self.walk.is_own(p.at[0]), WALK: self.walk}

    def hand_over(self, p: Part, tile: TensorValue) -> None:
        """To the thread that stores."""
        del tile
        with cute.when(p.first):
            self.ready.of(self._ring(p)).arrive(p.number)

    def end(self, p: Part) -> None:
        """The thread that stores says what may be loaded anew."""

    def finish(self, consumer: Any, first: Any) -> None:
        arch.instruction("barrier", consumer + STORE, n=WARPGROUP)  # all have written, to other ranks too
        with cute.when(first):
            self.done.arrive(0)

    def _send_all(self, tile_of: Callable[[Any], At], turns: Any) -> None:
        """For one thread. It tells the same block of the others that this launch has begun: their rank has ended all
        before it. Then it stores all tiles, and behind the last one for others tells them."""
        t, parts, walk = self.t, self.t.n // self.t.row, self.walk
        flags, state = self.operands["flags"], self.operands["state"]
        self.waits, self.came = Waits(state, walk.block), cute.number(state[walk.block, 0].value)
        # Whether this launch of the others has begun, and all for them is told
        self.begun, self.told = (cute.make_fragment(1, "i32") for _ in range(2))
        for known in (self.begun, self.told):
            known[0] = cute.scalar(0, "i32")
        for rank in walk.others():
            arch.instruction("flag.add", place_of(flags, rank, walk.rank, walk.block), 1)
        for turn in cute.range_(turns):
            row, column = tile_of(turn)
            with cute.when(cute.both(walk.is_own(row), _not_yet(self.told))):
                self._tell()
            ring = turn % t.rings if t.apart else 0
            for part in range(parts):
                number = turn // t.rings * parts + part
                self.ready.of(ring).wait(number)
                tile = self.tiles[None, None, ring * t.parts + number % t.parts]
                self.send_part(tile, t.place(column, part) * t.row, row * t.m)
                arch.instruction("copy.bulk_commit_group")
                arch.instruction("copy.bulk_wait_group", n=0)
                self.free.of(ring).arrive(number)
        with cute.when(_not_yet(self.told)):  # it has no own tile
            self._tell()
        self.done.wait(0)
        arch.instruction("copy.bulk_wait_group_all", n=0)
        state[walk.block, 0] = cute.scalar(self.came + MEETINGS, "i32")
        self.ended()

    def ended(self) -> None:
        """Behind all of a block."""

    def _tell(self) -> None:
        walk = self.walk
        arch.instruction("copy.bulk_wait_group_all", n=0)
        for rank in walk.others():
            there = place_of(self.operands["flags"], rank, walk.rank, walk.receiver(rank))
            arch.instruction("flag.add", there, 1)
        self.told[0] = cute.scalar(1, "i32")

    def send_part(self, part: TensorValue, column: Any, row: Any) -> None:
        """Begins to store a part to where its rows belong."""
        walk = self.walk
        tile = row // self.t.m
        rank, at = tile // walk.down, row - tile // walk.down * (walk.down * self.t.m)
        own = cute.same(rank, walk.rank)
        with cute.when(own):
            self.keep(cute.address(part), column, row, at)
        with cute.when(cute.invert(own)):
            with cute.when(_not_yet(self.begun)):
                for other in walk.others():
                    place = place_of(self.operands["flags"], walk.rank, other, walk.block)
                    self.waits.wait(place, self.came + 1, other)
                arch.instruction("fence.proxy_async_global")
                self.begun[0] = cute.scalar(1, "i32")
            for piece in range(self.t.m // PIECE):
                source, there = cute.address(cute.local_tile(part, (PIECE, self.t.row), (piece, 0))), at + piece * PIECE
                arch.instruction("copy.tma_store", source, self.piece_map, column, there, walk.rank, rank)
                arch.instruction("copy.bulk_commit_group")
                arch.instruction("copy.bulk_wait_group", n=1)

    def keep(self, source: Any, column: Any, row: Any, at: Any) -> None:
        """Stores own rows. `row`: the first, counted over all pieces; `at`: in its own."""
        del row
        arch.instruction("copy.tma_store", source, self.out_map, column, at)


class ScatterStream(Scatter):
    """Adds own rows to the residual stream of its own rank: `rms_linear_of_ranks` stores them to the others."""

    brings = 2  # the residual stream too

    def keep(self, source: Any, column: Any, row: Any, at: Any) -> None:
        del at
        arch.instruction("copy.tma_store", source, self.out_map, column, row, self.walk.rank)

    def ended(self) -> None:
        """Says how much the others will have to send before their rows are there: as much as this rank."""
        arrived = self.operands["arrived"]
        with cute.when(cute.same(self.walk.block, 0)):
            place = place_of(self.operands["ended"], self.walk.rank, self.walk.rank)
            arch.instruction("flag.add", place, sent(arrived.shape[2], arrived.shape[3]))


def _not_yet(done: TensorValue) -> Any:
    return cute.same(cute.number(done[0].value), 0)


@dataclass(frozen=True)
class PieceOfTile(Place):
    """A place for which something has been brought to shared memory: what one rank has made, and the residual."""

    arrived: Callable[[], None] = lambda: None
    brought: Callable[[int], Values] = lambda _: []


def add_parts(sums: TensorValue, place: PieceOfTile, operands: Operands) -> None:
    """Adds what other ranks have made of an own tile, in their order. That of the first is brought, those of more ranks
    are read."""
    walk: Pieces = operands[WALK]
    for i, value in enumerate(place.brought(0)):
        sums[i] = sums[i] + value
    arrived = operands["arrived"]
    rows, columns = arrived.shape[2], arrived.shape[3]
    here = Place(place.mma, place.tile, (place.at[0] % walk.down, place.at[1]), (rows, columns), place.thread)
    with cute.when(cute.less(2, walk.ranks)):
        for rank in walk.others():
            with cute.when(cute.less(walk.first_other, rank)):
                for i, value in enumerate(here.read(arrived[walk.rank, rank, None, None])):
                    sums[i] = sums[i] + value


def add_stream(values: Values, place: Place, operands: Operands) -> Values:
    """values + the residual stream, which is brought."""
    del operands
    assert isinstance(place, PieceOfTile)
    return [a + b for a, b in zip(values, place.brought(1), strict=True)]


@dataclass(frozen=True)
class Shared(Epilogue):
    """What becomes of an own tile's sums. Those of others are only rounded. `stream`: it is added to the
    residual stream, of which all ranks have a copy."""

    stream: bool = False

    def shape(self, operands: Operands) -> tuple[Any, Any]:
        """Rows, over all pieces, and columns."""
        arrived = operands["arrived"]
        return arrived.shape[0] * arrived.shape[2], arrived.shape[3]

    def __call__(self, sums: TensorValue, place: Place, operands: Operands) -> TensorValue:
        assert isinstance(place, PieceOfTile)
        place.arrived()
        if self.last:
            _ = place.where  # known also behind what follows
        with cute.when(operands[OWN]):
            add_parts(sums, place, operands)
            values = [sums[i] for i in range(size(sums.layout))]
            for step in self.steps:
                values = step(values, place, operands)
            for i, value in enumerate(values):
                sums[i] = value
        return Epilogue.__call__(replace(self, steps=()), sums, place, operands)


MATMUL = Shared("matmul_reduce_scatter")
TO_RANKS = Shared(
    "linear_to_ranks", (add_bias, add_stream, sum_squares), first=no_sums, last=write_squares, stream=True
)
SCATTERED = {
    "matmul_reduce_scatter": (MATMUL, Scheme(maps, Stacked, Scatter)),
    "linear_to_ranks": (TO_RANKS, Scheme(maps, Pieces, ScatterStream)),
}
