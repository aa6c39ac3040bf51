"""Copy atoms: what one instruction moves, and which thread names and receives which elements.

A thread-value layout maps (thread, value) to an element of the atom's tile, for the source and for the destination.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import UsageError
from ..layout import Layout, composition, right_inverse
from .copy import MatrixCopyAtom, copies
from .mma import WARP

_SIMPLE = re.compile(r"(universal|cp\.async)\.b(\d+)")
VECTOR_BITS = (8, 16, 32, 64, 128)
ASYNC_BITS = (32, 64, 128)
TMA_REDUCTIONS = (
    "add",
    "min",
    "max",
    "inc",
    "dec",
    "and",
    "or",
    "xor",
)  # of TMA's stores


@dataclass(frozen=True)
class CopyAtom:
    """`name`: `universal.b128` (a load or a store), `cp.async.b128`, or a matrix copy such as `ldmatrix.x4`. `bits`: of
    an element. `matrix`: the instruction of a matrix copy. Raises UsageError if an element does not fit."""

    name: str
    bits: int

    def __post_init__(self) -> None:
        found = _SIMPLE.fullmatch(self.name)
        if found is None:
            if self.name not in copies():
                raise UsageError(
                    f"no copy atom {self.name!r}", hint=f"universal.bN, cp.async.bN, {', '.join(copies())}"
                )
            if self.bits != 16:
                raise UsageError(f"{self.name} moves elements of 16 bits, not of {self.bits}")
            return
        allowed = ASYNC_BITS if found[1] == "cp.async" else VECTOR_BITS
        if self.vector not in allowed:
            raise UsageError(
                f"no copy atom {self.name!r}", hint=f"{found[1]}.bN with N of {', '.join(map(str, allowed))}"
            )
        if self.vector % self.bits:
            raise UsageError(f"{self.name} moves no whole number of elements of {self.bits} bits")

    @property
    def vector(self) -> int:
        """The bits that one thread moves."""
        return int(self.name.rpartition(".b")[2])

    @property
    def matrix(self) -> MatrixCopyAtom | None:
        return copies().get(self.name)

    @property
    def is_async(self) -> bool:
        return self.name.startswith("cp.async")

    @property
    def threads(self) -> int:
        return WARP if self.matrix else 1

    @property
    def source(self) -> Layout:
        """(thread, value) of the source to an element. A thread of ldmatrix names a row; those beyond the rows name
        one again."""
        if self.matrix is None:
            return self._vector
        return self._rows if self.matrix.load else self.matrix.register_layout

    @property
    def target(self) -> Layout:
        """(thread, value) of the destination to an element."""
        if self.matrix is None:
            return self._vector
        return self.matrix.register_layout if self.matrix.load else self._rows

    @property
    def reference(self) -> Layout:
        """The side that a tiled copy is laid out for: the registers of a matrix copy."""
        return self.source if self.matrix and not self.matrix.load else self.target

    def to_reference(self, side: Layout) -> Layout:
        """(thread, value) of a side to the index of (thread, value) of the reference."""
        return composition(right_inverse(self.reference), side)

    @property
    def _vector(self) -> Layout:
        return Layout((1, self.vector // self.bits), (0, 1))

    @property
    def _rows(self) -> Layout:
        assert self.matrix is not None
        rows, columns = self.matrix.tile
        return Layout(((rows, WARP // rows), columns), ((1, 0), rows))
