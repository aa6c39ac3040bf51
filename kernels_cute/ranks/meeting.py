"""How the blocks of a product meet those of other ranks: flags in the memory of all (docs/several-gpus.md).

A rank has a piece of the rows, and its tiles come last in its walk; those of the other ranks' pieces come first, in the
order of the ranks behind it. Tiles are dealt out to the blocks in this order, so a block's tiles of another rank's
piece are those of one block there. To its flag a block adds 1 for each of its warpgroups that has stored all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xdsl.dialects.builtin import i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from ..products.epilogues import Operands
from ..products.linear import ROW, walked
from ..products.tiles_sm90 import Tiles
from ..products.walk_sm90 import Walk

# Rows that TMA stores to another rank at once. It takes one box after the other: behind a large one, which a link holds
# up, a block's own loads wait.
PIECE = 32


def place_of(tensor: Any, *where: Any) -> Any:
    """The pointer to an element of a tensor."""
    *outer, last = where
    line = tensor[(*outer, None)] if outer else tensor
    return cute.address(cute.local_tile(line, (1,), (last,)))


def sent(rows: Any, columns: Any) -> Any:
    """What is counted of rows that a rank sends to another one: of each 64 columns the rows."""
    return rows * cute.ceil_div(columns, ROW)


class Waits:
    """What a thread has waited for, and for whom in vain. `state`: i32 (B, 2), whose second column says it."""

    def __init__(self, state: Any, block: Any) -> None:
        self.state, self.block = state, block
        self.gone = cute.make_fragment(1, "i32")
        self.gone[0] = state[block, 1]

    def wait(self, place: Any, count: Any, rank: Any) -> None:
        """Waits until a count of another rank is at least a number."""
        late = arch.instruction("flag.wait", place, count, self.gone[0], results=[i32])[0]
        with cute.when(cute.less(0, cute.number(late))):
            self.gone[0] = self.state[self.block, 1] = cute.scalar(rank + 1, i32)


class Pieces(Walk):
    """The tiles of all ranks' pieces of the rows, one after the other, the own one first or last. `rank`, `ranks`."""

    own_first = False

    def __init__(self, t: Tiles, operands: Operands, block: Any, blocks: Any, half: Any) -> None:
        super().__init__(t, operands, block, blocks, half)
        self.rank, self.ranks = operands["rank"], self.ranks_of(operands)
        self.down = self.height(operands)
        self.tiles = self.down * self.across  # of a piece

    def ranks_of(self, operands: Operands) -> Any:
        return operands["arrived"].shape[0]

    def height(self, operands: Operands) -> Any:
        """Tiles of a piece from top to bottom."""
        return cute.ceil_div(operands["arrived"].shape[2], self.t.m)

    @property
    def turns(self) -> Any:
        return cute.ceil_div(self.tiles * self.ranks - self.block, self.blocks)

    def tile(self, turn: Any) -> tuple[Any, Any]:
        number = self.block + turn * self.blocks
        piece = number // self.tiles + (0 if self.own_first else 1) + self.rank
        row, column = walked(number % self.tiles, self.down, self.across, self.t.group)
        return piece % self.ranks * self.down + row, column

    def is_own(self, row: Any) -> Any:
        """True, an i1, for a row of tiles of the own piece."""
        return cute.same(row // self.down, self.rank)

    def others(self) -> Iterator[Any]:
        """The other ranks, in their order: a loop of the kernel."""
        for rank in cute.range_(self.ranks):
            with cute.when(cute.invert(cute.same(rank, self.rank))):
                yield rank

    @property
    def first_other(self) -> Any:
        """The first rank but this one."""
        return 1 - self.rank.minimum(1)

    def receiver(self, rank: Any) -> Any:
        """The block of a rank to whose tiles those that this block makes for it belong."""
        ahead = (rank + self.ranks - self.rank - 1) % self.ranks  # which piece of this rank it is
        return (self.block + (self.ranks - 1 - ahead) * self.tiles) % self.blocks


class Stacked(Pieces):
    """The same of an x (R, M, K)."""

    def load(self, target: Any, x_map: Any, signal: Any, at_k: Any, row: Any) -> None:
        at_m = row % self.down * self.t.m
        arch.instruction("copy.tma_load", target, x_map, signal, at_k, at_m, row // self.down)
