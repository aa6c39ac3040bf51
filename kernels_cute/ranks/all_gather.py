"""`all_gather_matmul`: each of R ranks has some rows of x, and multiplies those of all with its columns of the weight.

A block begins with own rows, while a thread of its own stores some of them to `gathered` of the other ranks. All blocks
wait for all: a rank has begun a launch when one of its blocks has, and stored its rows when all have told so. Each
block tells both once, so every launch has as many blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolchain.contract.artifact import TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.errors import UsageError

from ..products.epilogues import Epilogue, Operands
from ..products.linear import ROW
from ..products.linear_sm90 import Scheme
from ..products.store_sm90 import WARP, At
from ..products.tiles_sm90 import ATOM, BYTES, Tiles
from .gather import Sending
from .meeting import PIECE, Pieces, Waits, place_of

TOLD = 2  # times in a launch: that a block has begun, and that its rows are stored


def maps(t: Tiles, epilogue: Epilogue) -> tuple[TensorMap, ...]:
    """The tensor maps behind the op's parameters: of x, the weight, the output, and the rows as they are read and sent,
    and as they are read by the others. Raises UsageError."""
    del epilogue
    if t.n % ROW:
        raise UsageError(f"{t} is no tile of several ranks", hint=f"n as a multiple of {ROW}")
    x, sent, rows = (t.m, t.k), (PIECE, t.k), t.m if t.apart else ATOM
    return (
        TensorMap("x", x, BYTES), TensorMap("weight", (t.k, ROW), BYTES), TensorMap("out", (1, rows, ROW), BYTES),
        TensorMap("x", sent, BYTES), TensorMap("gathered", (1, 1, *sent), BYTES),
        TensorMap("gathered", (1, 1, *x), BYTES),
    )  # fmt: skip


class Gathered(Pieces):
    """The own piece first; the others behind it, when all of each has been stored here."""

    own_first = True
    gathered_map: Any  # that of the store, which is made behind this
    known: Barriers  # the counts of the launches before have been read

    def ranks_of(self, operands: Operands) -> Any:
        return operands["gathered"].shape[0]

    def height(self, operands: Operands) -> Any:
        return cute.ceil_div(operands["x"].shape[0], self.t.m)

    def start(self) -> None:
        turns = self.operands["turns"]
        self.waits = Waits(turns, self.block)
        self.present = cute.make_fragment(1, "i32")  # the rank that has been waited for last
        self.present[0] = cute.scalar(self.rank, "i32")
        self.wanted = (cute.number(turns[self.block, 0].value) + TOLD) * self.blocks
        self.known.arrive(0)

    def begin(self, row: Any) -> None:
        of = row // self.down
        with cute.when(cute.invert(cute.same(of, cute.number(self.present[0].value)))):
            self.waits.wait(place_of(self.operands["counts"], self.rank, of), self.wanted, of)
            arch.instruction("fence.proxy_async_global")
            self.present[0] = cute.scalar(of, "i32")

    def load(self, target: Any, x_map: Any, signal: Any, at_k: Any, row: Any) -> None:
        of, at_m = row // self.down, row % self.down * self.t.m
        own = cute.same(of, self.rank)
        with cute.when(own):
            arch.instruction("copy.tma_load", target, x_map, signal, at_k, at_m)
        with cute.when(cute.invert(own)):
            arch.instruction("copy.tma_load", target, self.gathered_map, signal, at_k, at_m, of, self.rank)


class SendingAll(Sending):
    """Stores own rows to `gathered` of the other ranks."""

    walk: Gathered

    def __init__(self, dtype: str, t: Tiles, maps_: Sequence[Any], walk: Gathered, operands: Operands) -> None:
        super().__init__(dtype, t, maps_, walk, operands)
        walk.gathered_map, walk.known = maps_[-1], Barriers(1, 1)

    def init(self) -> None:
        super().init()
        self.walk.known.init()

    def load(self, thread: Any, tile_of: Callable[[Any], At], turns: Any) -> None:
        del tile_of, turns
        with cute.when(cute.same(thread, WARP)):
            walk, state, counts = self.walk, self.operands["turns"], self.operands["counts"]
            waits, came = Waits(state, walk.block), cute.number(state[walk.block, 0].value)
            for told in range(TOLD):
                for rank in walk.others():
                    arch.instruction("flag.add", place_of(counts, rank, walk.rank), 1)
                    if not told:  # their earlier launches have ended: nobody reads what is stored to them now
                        waits.wait(place_of(counts, walk.rank, rank), came * walk.blocks + 1, rank)
                if not told:
                    arch.instruction("fence.proxy_async_global")
                    self.send_rows()
            walk.known.wait(0)
            state[walk.block, 0] = cute.scalar(came + TOLD, "i32")

    def read_rows(self, buffer: Any, signal: Any, column: Any, row: Any) -> None:
        arch.instruction("copy.tma_load", buffer, self.sent_maps[0], signal, column, row)

    def write_rows(self, buffer: Any, column: Any, row: Any, rank: Any) -> None:
        arch.instruction("copy.tma_store", buffer, self.sent_maps[1], column, row, self.walk.rank, rank)

    def send(self, source: Any, column: Any, row: Any) -> None:
        of = row // (self.walk.down * self.t.m)
        arch.instruction("copy.tma_store", source, self.out_map, column, row - of * (self.walk.down * self.t.m), of)


class OfAll(Epilogue):
    """The sums as they are."""

    def shape(self, operands: Operands) -> tuple[Any, Any]:
        """Rows, over all pieces, and columns."""
        ranks, rows, columns = operands["out"].shape
        return ranks * rows, columns


ALL_GATHERED = {"all_gather_matmul": (OfAll("all_gather_matmul"), Scheme(maps, Gathered, SendingAll))}
