"""The copy atoms between shared memory and registers: `ldmatrix` and `stmatrix` of a warp.

They move 1, 2 or 4 matrices of 8 x 8 elements of 16 bits. The matrices are stacked: the tile has 8, 16 or 32 rows and 8
columns, and a layout maps (thread, value) to an element of it, column-major. Source: PTX ISA 9.0, "ldmatrix" and
"stmatrix".
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import UsageError
from ..layout import Layout

SIDE = 8  # rows and columns of a matrix
COUNTS = (1, 2, 4)


@dataclass(frozen=True)
class MatrixCopyAtom:
    """`load`: ldmatrix, from shared memory; else stmatrix. `count`: of matrices. `transposed`: a thread's two values of
    a register lie in one column instead of one row."""

    load: bool
    count: int
    transposed: bool

    @property
    def name(self) -> str:
        return f"{'ldmatrix' if self.load else 'stmatrix'}.x{self.count}{'.trans' * self.transposed}"

    @property
    def arch(self) -> int:
        """The lowest architecture that has it, such as 80 for sm_80."""
        return 80 if self.load else 90

    @property
    def tile(self) -> tuple[int, int]:
        """The rows and columns of the stacked matrices."""
        return SIDE * self.count, SIDE

    @property
    def rows_layout(self) -> Layout:
        """Which thread gives the address of which row: thread i that of row i. Threads beyond the rows give none."""
        rows, columns = self.tile
        return Layout((rows, columns), (1, rows))

    @property
    def register_layout(self) -> Layout:
        """Which thread holds which elements, two in each register, one register for each matrix."""
        rows, _ = self.tile
        if self.transposed:
            return Layout(((4, 8), (2, self.count)), ((2, rows), (1, SIDE)))
        return Layout(((4, 8), (2, self.count)), ((2 * rows, 1), (rows, SIDE)))

    def layout(self, operand: str) -> Layout:
        """The layout of `rows` in shared memory or of `registers`. Raises UsageError for another operand."""
        made = {"rows": self.rows_layout, "registers": self.register_layout}.get(operand)
        if made is None:
            raise UsageError(f"{self.name} has no operand {operand!r}", hint="rows or registers")
        return made

    @property
    def inline_asm(self) -> tuple[str, str]:
        """The PTX text and the constraints of `llvm.inline_asm`. The address is a 32-bit one of shared memory; a load
        has a register out for each matrix, a store has them in, after the address."""
        suffix = f"sync.aligned.m8n8.x{self.count}{'.trans' * self.transposed}.shared.b16"
        first = 0 if self.load else 1
        registers = "{" + ", ".join(f"${first + i}" for i in range(self.count)) + "}"
        if self.load:
            return f"ldmatrix.{suffix} {registers}, [${self.count}];", ",".join(["=r"] * self.count + ["r"])
        return f"stmatrix.{suffix} [$0], {registers};", ",".join(["r"] * (1 + self.count))


@functools.cache
def copies() -> Mapping[str, MatrixCopyAtom]:
    """All matrix copies by name: `ldmatrix.x4.trans`."""
    made = [MatrixCopyAtom(load, count, trans) for load in (True, False) for count in COUNTS for trans in (False, True)]
    return {atom.name: atom for atom in made}


def find_copy(name: str) -> MatrixCopyAtom:
    """The atom of a name. Raises UsageError."""
    if (found := copies().get(name)) is not None:
        return found
    raise UsageError(f"no copy atom {name!r}", hint=f"one of {', '.join(copies())}")
