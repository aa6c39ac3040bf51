"""How a product for sm_90a divides its work: a block's tile, the pipeline's stages, and what waits to be stored.

A tile's columns are a multiple of 32, so that tiles can be chosen of which each round keeps almost all multiprocessors
busy. The weight's tile lies in parts of 64 columns, of which the last may have 32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolchain.contract.artifact import MAX_SHARED
from toolchain.cute import dsl as cute
from toolchain.errors import UsageError

from .linear import ROW

BYTES = 128  # of a row of x and of the weight in shared memory, the widest that a swizzle spreads over all banks
SWIZZLE = cute.Swizzle(3, 4, 3)
WARPGROUP = 128
ATOM = 64  # rows of a product of a warpgroup
MOST = 256  # columns of a product of a warpgroup
SUMS = 192  # of a thread, which keeps 40 registers for all else
REGISTERS = 504  # of a thread of each of a block's warpgroups together, in eights: a multiprocessor has 65,536
MBARRIER = 8  # bytes
HALF = 32  # columns of 64 bytes; those of a tile are a multiple of it


@dataclass(frozen=True)
class Tiles:
    """The tile of a block, the pipeline's stages, and the parts of `row` columns of a result that wait in shared memory
    to be stored. `apart`: each of two warpgroups computes tiles of its own, so that one writes while the other
    multiplies; else they share a tile. `paired`: two blocks share what they load of the weight. `width`: bytes of an
    element of x and of the weight. `run`: steps along K that the tensor cores add up, or 0 for all. `registers`: of a
    thread that computes. `summed`: columns over which a row's squares are summed up, for an epilogue that does; 0 for
    all of the tile's. `early`: stages whose part of the weight is loaded before the launch before has ended, the next
    launch being let in behind the last load; 0 for neither. `group`: rows of tiles that blocks walk together, so that
    they find tiles in the L2 cache. Raises UsageError."""

    m: int = 128
    n: int = 256
    k: int = 64
    stages: int = 4
    parts: int = 1
    apart: bool = False
    paired: bool = False
    width: int = 2
    run: int = 0
    registers: int = 232
    summed: int = 0
    early: int = 0
    group: int = 8
    held: bool = False

    def __post_init__(self) -> None:
        step = HALF if self.width == 2 else ROW
        if self.n % step or not 0 < self.n <= MOST or self.m % ATOM or self.k * self.width != BYTES:
            raise UsageError(
                f"a tile of {self.m} x {self.n} x {self.k}",
                hint=f"multiples of {ATOM} and of {step} up to {MOST}, and {BYTES // self.width} along K",
            )
        if self.group < self.blocks or self.group % self.blocks:
            raise UsageError(f"{self}: {self.group} rows of tiles together", hint=f"a multiple of {self.blocks}")
        if not 0 <= self.early <= self.stages:
            raise UsageError(f"{self}: {self.early} stages early", hint=f"at most the {self.stages} that there are")
        if self.run and (self.apart or 2 * ATOM * self.n > SUMS * WARPGROUP):
            raise UsageError(f"{self}: a warpgroup has no registers for two sums", hint="a smaller tile, not apart")
        used = self.stages * (self.stage_bytes + 2 * MBARRIER) + self.rings * self.parts * (
            self.part_bytes + 2 * MBARRIER
        )
        used += self.vector_bytes
        if used > MAX_SHARED:
            raise UsageError(f"{self} takes {used} bytes of shared memory", hint="fewer stages or parts")
        if self.summed % self.row or (self.summed and self.n % self.summed):
            raise UsageError(
                f"{self}: squares of {self.summed} columns", hint=f"a multiple of {self.row} that divides n"
            )

    @property
    def consumers(self) -> int:
        """Warpgroups that compute."""
        return 2 if self.apart else self.m // ATOM

    @property
    def groups(self) -> int:
        """Warpgroups that compute one tile together."""
        return 1 if self.apart else self.consumers

    @property
    def loading_registers(self) -> int:
        """Registers of a thread of the warpgroup that loads."""
        return REGISTERS - max(self.consumers, 2) * self.registers

    @property
    def rings(self) -> int:
        """Of parts that wait to be stored: one for all that share a tile."""
        return self.consumers if self.apart else 1

    @property
    def row(self) -> int:
        """Columns of a part of the result."""
        return HALF if self.halved else ROW

    @property
    def halved(self) -> bool:
        """True if the weight's last part has 32 columns: every other tile begins in the middle of 64."""
        return self.n % ROW == HALF

    def place(self, column: Any, part: int) -> Any:
        """Which part of the output's columns a tile's part is. What lies in the middle of 64 columns is loaded alone
        and comes last, so that all other loads begin at multiples of 128 bytes."""
        parts = self.n // self.row
        if not self.halved:
            return column * parts + part
        last = part == parts - 1
        return column * parts + (part * (1 - column % 2) if last else part + column % 2)

    @property
    def beside(self) -> int:
        """With runs, the steps along K beside whose products the tile before leaves registers."""
        return self.n // self.row + 1

    @property
    def pieces(self) -> int:
        """Parts of 64 columns of the weight, the last one with it."""
        return -(-self.n // ROW)

    @property
    def part_bytes(self) -> int:
        """Of a part of a result of 16 bits."""
        return self.m * self.row * 2

    @property
    def columns_held(self) -> int:
        """Elements of a vector along columns that a warpgroup keeps: as many for each of its threads."""
        return -(-self.n // WARPGROUP) * WARPGROUP

    @property
    def vector_bytes(self) -> int:
        """Of all vectors of tiles in shared memory, at most: two scales, a bias, and factors."""
        return self.consumers * (self.m * 4 + self.columns_held * 10) if self.held else 0

    @property
    def blocks(self) -> int:
        """Of a cluster."""
        return 2 if self.paired else 1

    @property
    def threads(self) -> int:
        return WARPGROUP * (1 + self.consumers)

    @property
    def bytes(self) -> int:
        """That a stage is filled with."""
        return (self.m + self.n) * BYTES

    @property
    def stage_bytes(self) -> int:
        """That a stage takes: the weight's last part has rows as wide as the others."""
        return (self.m + self.pieces * ROW) * BYTES
