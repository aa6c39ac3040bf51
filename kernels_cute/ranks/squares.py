"""Sums of squares of rows that a rank makes, which all ranks get."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl.values import SizedTensor
from toolchain.cute.layout import Layout

from ..products.epilogues import Operands, Place
from ..products.rms import QUAD, SUMS, over_quad

OWN = "own"  # an operand that a tile may add: true, an i1, if it is of the rank's own piece


def write_squares(place: Place, operands: Operands, z: Any) -> None:
    """squares[z] of an own tile's rows, to all ranks; the sums are 0 again."""
    squares, sums = operands["squares"], operands[SUMS]
    ranks, parts, rows = squares.shape
    values = over_quad(sums)
    cute.fill(sums, 0.0)
    writes = cute.both(cute.same(place.thread % QUAD, 0), cute.less(z, parts))
    with cute.when(cute.both(operands[OWN], writes) if OWN in operands else writes):
        for rank in cute.range_(ranks):
            there = SizedTensor(squares[rank, z, None].value, Layout(rows, 1))
            place.write_rows(values, there)
