"""Which tiles of its output a block of a product for sm_90a computes, in which order, and where their rows lie in x."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from .epilogues import Operands
from .linear import walked
from .tiles_sm90 import Tiles


class Walk:
    """All tiles of a product, whose first ones begin with the first row. `half`: of a pair of blocks, which."""

    def __init__(self, t: Tiles, operands: Operands, block: Any, blocks: Any, half: Any) -> None:
        self.t, self.operands, self.block, self.blocks, self.half = t, operands, block, blocks, half
        self.down = cute.ceil_div(operands["out"].shape[-2], t.m * t.blocks)
        self.across = cute.ceil_div(operands["out"].shape[-1], t.n)

    @property
    def turns(self) -> Any:
        """Tiles of this block."""
        return cute.ceil_div(self.down * self.across - self.block, self.blocks)

    def tile(self, turn: Any) -> tuple[Any, Any]:
        """Row and column of the block's tile of a turn, among tiles."""
        row, column = walked(self.block + turn * self.blocks, self.down, self.across, self.t.group // self.t.blocks)
        return (row * 2 + self.half if self.t.paired else row), column

    def start(self) -> None:
        """Before the first tile, in the thread that loads."""

    def begin(self, row: Any) -> None:
        """Waits, in the thread that loads, for the rows of x of a tile."""

    def load(self, target: Any, x_map: Any, signal: Any, at_k: Any, row: Any) -> None:
        """Begins to load a piece of a tile's rows of x."""
        arch.instruction("copy.tma_load", target, x_map, signal, at_k, row * self.t.m)
