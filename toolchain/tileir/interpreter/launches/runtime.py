"""What the generated code of an entry runs in, and one grid of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ..analysis.counters import Counters
from ..memory.log import AccessLog, Around
from ..memory.memory import AddressSpace, Allocation, Placed, Pointer
from ..operations.codegen import Kernel

Grid = tuple[int, int, int]


@dataclass
class Runtime:
    """The launch that generated code runs in. `first`: the number of block (0, 0, 0)."""

    grid: Grid
    globals: dict[str, Allocation]
    space: AddressSpace = field(default_factory=AddressSpace)
    log: AccessLog = field(default_factory=AccessLog)
    first: int = 0
    block: Grid | None = None
    padded: set[Operation] = field(default_factory=set[Operation])  # that used zeros read outside
    counters: Counters = field(default_factory=Counters)

    def begin(self, x: int, y: int, z: int) -> None:
        self.block = (x, y, z)
        self.log.begin(self.first + (z * self.grid[1] + y) * self.grid[0] + x)

    def global_address(self, name: str) -> int:
        return self.space.address(Pointer(self.globals[name]))

    def allocate(self, nbytes: int) -> int:
        """New memory for one block. It is filled with a pattern, so that reading before writing gives odd results."""
        return self.space.address(Pointer(Allocation(np.full(nbytes, 0xFF, np.uint8))))


@dataclass(frozen=True)
class Running:
    """One grid of a launch. `first`: the number of its block (0, 0, 0) among those of all grids; `bind`: the arguments
    as values of generated code, in an address space. `placed`: memory whose addresses the program knows. `padded`: the
    operations that have used zeros which a load read outside its tensor. `before` and `after`: what other launches of
    the device do with memory that other devices reach."""

    kernel: Kernel
    grid: Grid
    globals: dict[str, Allocation]
    bind: Callable[[AddressSpace], tuple[Any, ...]]
    first: int = 0
    placed: Sequence[Placed] = ()
    padded: set[Operation] = field(default_factory=set[Operation])
    before: Sequence[Around] = ()
    after: Sequence[Around] = ()

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def number(self, index: Grid) -> int:
        x, y, z = index
        return self.first + (z * self.grid[1] + y) * self.grid[0] + x

    def block(self, number: int) -> Grid:
        """The index of a block by its number among those of all grids."""
        rest, x = divmod(number - self.first, self.grid[0])
        z, y = divmod(rest, self.grid[1])
        return x, y, z


def indices(grid: Grid) -> Iterator[Grid]:
    """The blocks of a grid, x fastest."""
    return ((x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0]))
