"""Products whose sums over K are shared out to several ranks: each gets the parts of all for its piece of the rows.

A block computes tiles of the other ranks' pieces first and stores each, rounded, by TMA to `arrived` of the rank that
it is for, while the next one is multiplied. Its own tiles come last. To these it adds what has arrived for them, in the
order of the ranks.

`matmul_reduce_scatter` writes the sum to its own memory. `linear_to_ranks` adds it to the residual stream, with a bias,
and stores the rows to all ranks, with their sums of squares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolchain.contract.artifact import MAX_SHARED, TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.dsl.values import SizedTensor, TensorValue
from toolchain.cute.layout import Layout, size
from toolchain.errors import UsageError

from .epilogues import Epilogue, Operands, Place, Values, add_bias
from .linear import ROW
from .linear_sm90 import Scheme
from .meeting import Pieces, Stacked, Waits, place_of
from .rms import SUMS, no_sums, over_quad, sum_squares
from .store_sm90 import At, Part, StoreOver
from .tiles_sm90 import ATOM, BYTES, SWIZZLE, WARPGROUP, Tiles

OWN = "own"  # an operand that a tile adds: true, an i1, if it is of the rank's own piece
WALK = "walk"  # and where it lies
BLOCK = 5  # the number of the barrier at which the computing warpgroups of a block meet


def maps(t: Tiles, epilogue: Epilogue) -> tuple[TensorMap, ...]:
    """The tensor maps behind the op's parameters: of x, the weight, the output, and what arrives. Then, as they are
    read: what arrives, and the residual stream."""
    if t.n % ROW:
        raise UsageError(f"{t} is no tile of several ranks", hint=f"n as a multiple of {ROW}")
    rows = t.m if t.apart else ATOM
    to_all = isinstance(epilogue, Shared) and epilogue.to_all
    x, out = ((t.m, t.k), (1, rows, ROW)) if to_all else ((1, t.m, t.k), (rows, ROW))
    made = (
        TensorMap("x", x, BYTES), TensorMap("weight", (t.k, ROW), BYTES), TensorMap("out", out, BYTES),
        TensorMap("arrived", (1, 1, rows, ROW), BYTES), TensorMap("arrived", (1, 1, t.m, ROW), BYTES),
    )  # fmt: skip
    return (*made, TensorMap("out", (1, t.m, ROW), BYTES)) if to_all else made


class Scatter(StoreOver):
    """Stores tiles of other ranks to them, and own ones over what has arrived, which TMA brings. `operands`: of the
    kernel. Raises UsageError."""

    def __init__(self, dtype: str, t: Tiles, maps_: Sequence[Any], walk: Pieces, operands: Operands) -> None:
        out_map, self.arrived_map, self.arrived_in, *self.more_maps = maps_
        super().__init__(dtype, t, out_map, self.arrived_in)
        self.walk, self.operands = walk, operands
        shape = (t.m, ROW, t.parts * t.rings)
        layout = Layout(shape, (ROW, 1, t.m * ROW))
        self.more = [cute.shared_tensor(dtype, layout, swizzle=SWIZZLE) for _ in self.more_maps]
        used = t.stages * t.bytes + (1 + len(self.more)) * t.rings * t.parts * t.part_bytes
        if used + 16 * (t.stages + t.rings * t.parts) > MAX_SHARED:
            raise UsageError(f"{t} takes {used} bytes of shared memory", hint="fewer stages or parts")

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
                waits.wait(place, came + (1 + t.consumers), rank)
            arch.instruction("fence.proxy_async")
            self.joined[0] = cute.scalar(1, "i32")
        with cute.when(own):
            full.expect(number, t.part_bytes * (1 + len(self.more)))
            target, at = cute.address(self.tiles[None, None, buffer]), row % walk.down * t.m
            where = (column, at, walk.first_other, walk.rank)
            arch.instruction("copy.tma_load", target, self.arrived_in, signal, *where)
            for tensor, map_ in zip(self.more, self.more_maps, strict=True):
                target = cute.address(tensor[None, None, buffer])
                arch.instruction("copy.tma_load", target, map_, signal, column, row * t.m, walk.rank)
        with cute.when(cute.invert(own)):
            full.arrive(number)

    def place(self, p: Part, shape: At) -> Place:
        def brought(which: int) -> Values:
            tile = self.tile(p) if which == 0 else self.more[which - 1][None, None, self.buffer(p)]
            return self.read(p, tile)

        mine = self.mma, (self.t.m, ROW), p.at, shape, p.worker
        return PieceOfTile(*mine, arrived=lambda: self.arrived(p), brought=brought)

    def start(self, consumer: Any, first: Any) -> None:
        """Tells the same block of the others that this launch has begun: their rank has ended all before it."""
        walk, flags, state = self.walk, self.operands["flags"], self.operands["state"]
        self.waits = Waits(state, walk.block)
        self.came = cute.number(state[walk.block, 0].value)
        # Whether this launch of the others has begun, and all for them is told
        self.begun, self.told = (cute.make_fragment(1, "i32") for _ in range(2))
        for done in (self.begun, self.told):
            done[0] = cute.scalar(0, "i32")
        with cute.when(cute.both(first, cute.same(consumer, 0))):
            for rank in walk.others():
                arch.instruction("flag.add", place_of(flags, rank, walk.rank, walk.block), 1)

    def before(self, row: Any, first: Any) -> None:
        """Before the first own tile: waits until all for others has been stored, and tells it."""
        with cute.when(cute.both(self.walk.is_own(row), _not_yet(self.told))):
            with cute.when(first):
                self._tell()
            self.told[0] = cute.scalar(1, "i32")

    def knows(self, p: Part, operands: Operands) -> Operands:
        return {**operands, OWN: self.walk.is_own(p.at[0]), WALK: self.walk}

    def _tell(self) -> None:
        """For one thread of a warpgroup."""
        walk = self.walk
        arch.instruction("copy.bulk_wait_group_all", n=0)
        for rank in walk.others():
            there = place_of(self.operands["flags"], rank, walk.rank, walk.receiver(rank))
            arch.instruction("flag.add", there, 1)

    def send(self, source: Any, column: Any, row: Any) -> None:
        walk = self.walk
        tile = row // self.t.m
        rank, at = tile // walk.down, row - tile // walk.down * (walk.down * self.t.m)
        own = cute.same(rank, walk.rank)
        with cute.when(own):
            self.keep(source, column, row, at)
        with cute.when(cute.invert(own)):
            with cute.when(_not_yet(self.begun)):
                for other in walk.others():
                    place = place_of(self.operands["flags"], walk.rank, other, walk.block)
                    self.waits.wait(place, self.came + 1, other)
                arch.instruction("fence.proxy_async")
                self.begun[0] = cute.scalar(1, "i32")
            arch.instruction("copy.tma_store", source, self.arrived_map, column, at, walk.rank, rank)

    def keep(self, source: Any, column: Any, row: Any, at: Any) -> None:
        """Stores own rows. `row`: the first, counted over all pieces; `at`: in its own."""
        del row
        arch.instruction("copy.tma_store", source, self.out_map, column, at)

    def finish(self, consumer: Any, first: Any) -> None:
        with cute.when(first):
            with cute.when(_not_yet(self.told)):  # it has no own tile
                self._tell()
            arch.instruction("copy.bulk_wait_group_all", n=0)
        arch.instruction("barrier", BLOCK, n=WARPGROUP * self.t.consumers)  # all have read what they came for
        with cute.when(cute.both(first, cute.same(consumer, 0))):
            self.operands["state"][self.walk.block, 0] = cute.scalar(self.came + (1 + self.t.consumers), "i32")


class ScatterToAll(Scatter):
    """Stores own rows to all ranks."""

    def keep(self, source: Any, column: Any, row: Any, at: Any) -> None:
        del at
        for rank in cute.range_(self.walk.ranks):
            arch.instruction("copy.tma_store", source, self.out_map, column, row, rank)

    def finish(self, consumer: Any, first: Any) -> None:
        """Says, to itself too, that a warpgroup has ended: see `rms_linear_of_ranks`."""
        super().finish(consumer, first)
        with cute.when(first):
            for rank in cute.range_(self.walk.ranks):
                arch.instruction("flag.add", place_of(self.operands["ended"], rank, self.walk.rank), 1)


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
    """What becomes of an own tile's sums. Those of others are only rounded. `to_all`: all ranks get the result."""

    to_all: bool = False

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


def write_squares(place: Place, operands: Operands, z: Any) -> None:
    """squares[z] of an own tile's rows, to all ranks; the sums are 0 again."""
    squares, sums = operands["squares"], operands[SUMS]
    ranks, parts, rows = squares.shape
    values = over_quad(sums)
    cute.fill(sums, 0.0)
    writes = cute.both(cute.same(place.thread % 4, 0), cute.less(z, parts))
    with cute.when(cute.both(operands[OWN], writes)):
        for rank in cute.range_(ranks):
            there = SizedTensor(squares[rank, z, None].value, Layout(rows, 1))
            place.write_rows(values, there)


MATMUL = Shared("matmul_reduce_scatter")
TO_RANKS = Shared(
    "linear_to_ranks", (add_bias, add_stream, sum_squares), first=no_sums, last=write_squares, to_all=True
)
SCATTERED = {
    "matmul_reduce_scatter": (MATMUL, Scheme(maps, Stacked, Scatter)),
    "linear_to_ranks": (TO_RANKS, Scheme(maps, Pieces, ScatterToAll)),
}
