"""`linear_of_own_rows`: a rank's piece of the rows times a weight that all ranks have whole, added to the residual
stream.

All ranks have written x in the launch before, each the columns of its heads (`attention_to_ranks`). So a block first
meets those of its number on the other ranks: these have begun this launch, so their ranks have written all of x, and
read what this one is to write. No part of a sum goes to another rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolchain.contract.artifact import TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers

from ..products.epilogues import Epilogue, Operands, Place, Values, add_bias
from ..products.linear import ROW, walked
from ..products.linear_sm90 import Scheme
from ..products.rms import no_sums, sum_squares
from ..products.store_sm90 import StoreOver
from ..products.tiles_sm90 import ATOM, BYTES, HALF, Tiles
from .meeting import Pieces, Waits, place_of, sent
from .squares import write_squares

MEETINGS = 1  # of two blocks in a launch: both have begun it


def maps(t: Tiles, epilogue: Epilogue) -> tuple[TensorMap, ...]:
    """The tensor maps behind the op's parameters: of x, the weight, the residual stream as it is written and as it is
    read, and of 32 columns of the weight if tiles have such."""
    del epilogue
    row = t.row * 2  # bytes of a row of a part
    made = [
        TensorMap("x", (1, t.m, t.k), BYTES), TensorMap("weight", (t.k, ROW), BYTES),
        TensorMap("out", (1, t.m if t.apart else ATOM, t.row), row), TensorMap("out", (1, t.m, t.row), row),
    ]  # fmt: skip
    if t.halved:
        made.append(TensorMap("weight", (t.k, HALF), BYTES))
    return tuple(made)


class OwnRows(Pieces):
    """The tiles of the own piece. Rows of tiles are counted over all pieces."""

    met: Barriers  # the other ranks have been met; that of the store, which is made behind this

    def ranks_of(self, operands: Operands) -> Any:
        return operands["x"].shape[0]

    def height(self, operands: Operands) -> Any:
        return cute.ceil_div(operands["x"].shape[1], self.t.m)

    @property
    def turns(self) -> Any:
        return cute.ceil_div(self.tiles - self.block, self.blocks)

    def tile(self, turn: Any) -> tuple[Any, Any]:
        row, column = walked(self.block + turn * self.blocks, self.down, self.across, self.t.group)
        return self.rank * self.down + row, column

    def start(self) -> None:
        """Tells the others that this launch has begun, and the own memory how many rows it makes."""
        flags, ended, state = (self.operands[name] for name in ("flags", "ended", "state"))
        for rank in self.others():
            arch.instruction("flag.add", place_of(flags, rank, self.rank, self.block), 1)
        waits, came = Waits(state, self.block), cute.number(state[self.block, 0].value)
        for rank in self.others():
            waits.wait(place_of(flags, self.rank, rank, self.block), came + MEETINGS, rank)
        arch.instruction("fence.proxy_async_global")
        self.met.arrive(0)
        state[self.block, 0] = cute.scalar(came + MEETINGS, "i32")
        with cute.when(cute.same(self.block, 0)):
            x, out = self.operands["x"], self.operands["out"]
            arch.instruction("flag.add", place_of(ended, self.rank, self.rank), sent(x.shape[1], out.shape[2]))

    def load(self, target: Any, x_map: Any, signal: Any, at_k: Any, row: Any) -> None:
        arch.instruction("copy.tma_load", target, x_map, signal, at_k, row % self.down * self.t.m, self.rank)


class StoreOwn(StoreOver):
    """Adds to the rows of the own rank's residual stream."""

    def __init__(self, dtype: str, t: Tiles, maps_: Sequence[Any], walk: OwnRows, operands: Operands) -> None:
        del operands
        super().__init__(dtype, t, *maps_)
        self.rank, self.met = walk.rank, Barriers(1, 1)
        walk.met = self.met

    def init(self) -> None:
        super().init()
        self.met.init()

    def start_loading(self) -> None:
        """Behind the meeting: so is what waits for the residual stream, and then stores squares to the other ranks."""
        self.met.wait(0)

    def bring(self, full: Barriers, number: Any, buffer: Any, column: Any, row: Any) -> None:
        full.expect(number, self.t.part_bytes)
        target, signal = cute.address(self.tiles[None, None, buffer]), full.at(number % self.t.parts)
        arch.instruction("copy.tma_load", target, self.residual_map, signal, column, row * self.t.m, self.rank)

    def send(self, source: Any, column: Any, row: Any) -> None:
        arch.instruction("copy.tma_store", source, self.out_map, column, row, self.rank)


def add_stream(values: Values, place: Place, operands: Operands) -> Values:
    """values + the residual stream, which has been brought to shared memory."""
    return [a + b for a, b in zip(values, place.read(operands["out"]), strict=True)]


class OfOwnRows(Epilogue):
    """Rows are counted over all pieces."""

    def shape(self, operands: Operands) -> tuple[Any, Any]:
        _, rows, columns = operands["out"].shape
        return rows, columns


OWN_ROWS = {
    "linear_of_own_rows": (
        OfOwnRows("linear_of_own_rows", (add_bias, add_stream, sum_squares), first=no_sums, last=write_squares),
        Scheme(maps, OwnRows, StoreOwn),
    )
}
