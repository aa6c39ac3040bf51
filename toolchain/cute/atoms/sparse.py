"""The metadata of a sparse A: which values of a row were kept.

A row of A is divided into chunks. Of a chunk of four values two are kept, of a chunk of two tf32 one. Four bits say
which: two numbers of 2 bits, the lower place first. A tf32 counts as two places, so its four bits are one of two. A
register of metadata describes eight chunks. Source: PTX ISA 9.0, "Sparse matrix storage" of mma.sp and of wgmma.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..layout import Layout
from .mma import BITS, WARP, MmaAtom

CODES = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)  # ascending places; no others are allowed
TF32_CODES = (0b0100, 0b1110)


def kept_places(atom: MmaAtom) -> Mapping[int, tuple[int, ...]]:
    """The places in a chunk of the values that were kept, by the four bits that say so."""
    if atom.ab == "tf32":
        return {code: ((code & 3) // 2,) for code in TF32_CODES}
    return {code: (code & 3, code >> 2) for code in CODES}


def chunk_size(atom: MmaAtom) -> int:
    """The values of A that four bits describe."""
    return 2 if atom.ab == "tf32" else 4


def metadata_layout(atom: MmaAtom) -> Layout:
    """(thread, four bits of its register) to a chunk of the column-major tile M x K/chunk.

    Of threads with the same chunks the first ones count: the instructions are written with a sparsity selector of 0.
    """
    m, chunks = atom.m, atom.k // chunk_size(atom)
    rows, strides = ((8,), (1,)) if atom.threads == WARP else ((8, 4), (1, 16))
    if BITS[atom.ab] == 8:  # a register for a row
        parts = chunks // 8
        return Layout(((2, parts, 2 // parts, *rows), 8), ((8, 8 * m, 0, *strides), m))
    parts = chunks // 4  # a register for four chunks of a row, and four of the row 8 further down
    return Layout(((parts, 4 // parts, *rows), (4, 2)), ((4 * m, 0, *strides), (m, 8)))
