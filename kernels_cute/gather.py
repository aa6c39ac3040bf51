"""Products of rows that other ranks have stored here: `linear_to_ranks`, the launch before, stores a piece on each.

A block begins with tiles of the own piece. Before the first row of another one the thread that loads waits until that
rank's launch has ended. All who need what was stored get it through shared memory, or behind this thread's signal.
"""

from __future__ import annotations

from typing import Any

from toolchain.contract.artifact import TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.values import SizedTensor
from toolchain.cute.layout import Layout

from .epilogues import Epilogue, Operands, Place, add_bias, gelu
from .linear_sm90 import Scheme
from .linear_sm90 import maps as maps_of_one
from .meeting import Pieces, Waits, place_of
from .rms import divide, read_inverses
from .tiles_sm90 import BYTES, Tiles


def maps(t: Tiles, epilogue: Epilogue) -> tuple[TensorMap, ...]:
    """The tensor maps behind the op's parameters: of x, the weight and the output."""
    _, *others = maps_of_one(t, epilogue)
    return TensorMap("x", (1, t.m, t.k), BYTES), *others


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
            arch.instruction("fence.proxy_async")
            self.present[0] = cute.scalar(of, "i32")

    def load(self, target: Any, x_map: Any, signal: Any, at_k: Any, row: Any) -> None:
        arch.instruction("copy.tma_load", target, x_map, signal, at_k, row * self.t.m, self.rank)


def read_own_inverses(place: Place, operands: Operands) -> Operands:
    """`read_inverses` of the squares that lie in this rank's memory."""
    squares, rank = operands["squares"], operands["rank"]
    _, *sizes = squares.shape
    here = SizedTensor(squares[rank, None, None].value, Layout(tuple(sizes), (sizes[1], 1)))
    return {**read_inverses(place, {**operands, "squares": here}), "squares": squares}


GATHERED = {
    made.op: (made, Scheme(maps, Arriving))
    for made in (
        Epilogue("rms_linear_of_ranks", (divide, add_bias), first=read_own_inverses),
        Epilogue("rms_linear_gelu_of_ranks", (divide, add_bias, gelu), first=read_own_inverses),
    )
}
