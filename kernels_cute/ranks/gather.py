"""Products of rows of all ranks, of which each has a piece that `linear_to_ranks`, the launch before, has made.

A block begins with tiles of the own piece, while a thread of its own stores some of its rows to the other ranks. Before
the first row of another piece the thread that loads waits until that rank has stored all of it. All who need what was
stored get it through shared memory, or behind this thread's signal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolchain.contract.artifact import TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.dsl.values import SizedTensor
from toolchain.cute.layout import Layout

from ..products.epilogues import Epilogue, Operands, Place, add_bias, gelu
from ..products.linear_sm90 import Scheme
from ..products.linear_sm90 import maps as maps_of_one
from ..products.rms import divide, read_inverses
from ..products.store_sm90 import WARP, At, Store
from ..products.tiles_sm90 import BYTES, SWIZZLE, Tiles
from .meeting import PIECE, Pieces, Waits, place_of, sent

FLYING = 2  # pieces of x that a block sends at the same time


def maps(t: Tiles, epilogue: Epilogue) -> tuple[TensorMap, ...]:
    """The tensor maps behind the op's parameters: of x, the weight, the output, x again, and of 32 columns of the
    weight if tiles have such."""
    _, weight, out, *half = maps_of_one(t, epilogue)
    x, piece = (TensorMap("x", (1, rows, t.k), BYTES) for rows in (t.m, PIECE))
    return x, weight, out, piece, *half


class Arriving(Pieces):
    """The own piece first; the others behind it when they have come."""

    own_first = True

    def ranks_of(self, operands: Operands) -> Any:
        return operands["x"].shape[0]

    def height(self, operands: Operands) -> Any:
        return operands["x"].shape[1] // self.ranks_of(operands) // self.t.m

    def start(self) -> None:
        self.waits = Waits(self.operands["state"], self.block)
        self.present = cute.make_fragment(1, "i32")  # the rank that has been waited for last
        self.present[0] = cute.scalar(self.rank, "i32")
        self.wanted = cute.number(self.operands["ended"][self.rank, self.rank].value)

    def begin(self, row: Any) -> None:
        of = row // self.down
        with cute.when(cute.invert(cute.same(of, cute.number(self.present[0].value)))):
            self.waits.wait(place_of(self.operands["ended"], self.rank, of), self.wanted, of)
            arch.instruction("fence.proxy_async_global")
            self.present[0] = cute.scalar(of, "i32")

    def load(self, target: Any, x_map: Any, signal: Any, at_k: Any, row: Any) -> None:
        arch.instruction("copy.tma_load", target, x_map, signal, at_k, row * self.t.m, self.rank)


class Sending(Store):
    """Beside the product a thread stores own rows to the other ranks, if they are new: each block some."""

    def __init__(self, dtype: str, t: Tiles, maps_: Sequence[Any], walk: Pieces, operands: Operands) -> None:
        out_map, *self.sent_maps = maps_
        super().__init__(dtype, t, out_map)
        self.walk, self.operands = walk, operands
        layout = Layout((PIECE, t.k, FLYING), (t.k, 1, PIECE * t.k))
        self.copies = cute.shared_tensor(dtype, layout, swizzle=SWIZZLE)
        self.come = Barriers(FLYING, 1)

    def init(self) -> None:
        super().init()
        self.come.init()

    def load(self, thread: Any, tile_of: Callable[[Any], At], turns: Any) -> None:
        del tile_of, turns
        with cute.when(cute.both(cute.same(thread, WARP), cute.less(0, self.operands["sends"]))):
            count = self.send_rows()
            with cute.when(cute.less(0, count)):
                for rank in self.walk.others():
                    place = place_of(self.operands["ended"], rank, self.walk.rank)
                    arch.instruction("flag.add", place, sent(PIECE, self.t.k) * count)

    def send_rows(self) -> Any:
        """Until they are there. The result: how many pieces it were."""
        t, walk = self.t, self.walk
        across = cute.ceil_div(self.operands["x"].shape[-1], t.k)
        count = cute.ceil_div(walk.down * (t.m // PIECE) * across - walk.block, walk.blocks)
        for number in cute.range_(count):
            piece = walk.block + number * walk.blocks
            column, row = piece % across * t.k, piece // across * PIECE
            buffer = cute.address(self.copies[None, None, number % FLYING])
            arch.instruction("copy.bulk_wait_group", n=FLYING - 1)
            self.come.expect(number, PIECE * BYTES)
            self.read_rows(buffer, self.come.at(number % FLYING), column, row)
            self.come.wait(number)
            for rank in walk.others():
                self.write_rows(buffer, column, row, rank)
            arch.instruction("copy.bulk_commit_group")
        arch.instruction("copy.bulk_wait_group_all", n=0)
        return count

    def read_rows(self, buffer: Any, signal: Any, column: Any, row: Any) -> None:
        """Begins to load a piece of the own rows, counted from their first one."""
        (x_map,), walk = self.sent_maps, self.walk
        arch.instruction(
            "copy.tma_load", buffer, x_map, signal, column, walk.rank * walk.down * self.t.m + row, walk.rank
        )

    def write_rows(self, buffer: Any, column: Any, row: Any, rank: Any) -> None:
        """Begins to store it to another rank."""
        (x_map,), walk = self.sent_maps, self.walk
        arch.instruction("copy.tma_store", buffer, x_map, column, walk.rank * walk.down * self.t.m + row, rank)


def read_own_inverses(place: Place, operands: Operands) -> Operands:
    """`read_inverses` of the squares that lie in this rank's memory."""
    squares, rank = operands["squares"], operands["rank"]
    _, *sizes = squares.shape
    here = SizedTensor(squares[rank, None, None].value, Layout(tuple(sizes), (sizes[1], 1)))
    return {**read_inverses(place, {**operands, "squares": here}), "squares": squares}


GATHERED = {
    made.op: (made, Scheme(maps, Arriving, Sending))
    for made in (
        Epilogue("rms_linear_of_ranks", (divide, add_bias), first=read_own_inverses),
        Epilogue("rms_linear_gelu_of_ranks", (divide, add_bias, gelu), first=read_own_inverses),
    )
}
