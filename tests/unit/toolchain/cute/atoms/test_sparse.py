"""Which thread's metadata says what of a sparse A. executor/test_sparse.py computes with it."""

from __future__ import annotations

import pytest

from toolchain.cute.atoms import MmaAtom, atoms, find
from toolchain.cute.atoms.sparse import chunk_size, kept_places, metadata_layout
from toolchain.cute.layout import size

SPARSE = [atom for atom in atoms().values() if atom.sparse and atom.n == 8]


def chunks(atom: MmaAtom, thread: int) -> list[tuple[int, int]]:
    """The row and the number in the row of each chunk that a thread's register describes."""
    layout = metadata_layout(atom)
    offsets = [layout((thread, part)) for part in range(size(layout[1]))]
    return [(offset % atom.m, offset // atom.m) for offset in offsets]


@pytest.mark.parametrize("atom", SPARSE, ids=lambda atom: atom.name)
def test_a_register_has_eight_chunks_and_each_chunk_is_there(atom: MmaAtom) -> None:
    layout = metadata_layout(atom)
    assert (size(layout[0]), size(layout[1])) == (atom.threads, 8)
    assert {layout(i) for i in range(size(layout))} == set(range(atom.m * atom.k // chunk_size(atom)))


@pytest.mark.parametrize(
    ("name", "thread", "wanted"),
    [
        ("mma_sp.m16n8k16.f32.f16", 4, [(1, 0), (1, 1), (1, 2), (1, 3), (9, 0), (9, 1), (9, 2), (9, 3)]),
        ("mma_sp.m16n8k32.f32.bf16", 5, [(1, 4), (1, 5), (1, 6), (1, 7), (9, 4), (9, 5), (9, 6), (9, 7)]),
        ("mma_sp.m16n8k16.f32.tf32", 5, [(1, 4), (1, 5), (1, 6), (1, 7), (9, 4), (9, 5), (9, 6), (9, 7)]),
        ("mma_sp.m16n8k32.s32.s8", 5, [(9, i) for i in range(8)]),
        ("mma_sp.m16n8k64.s32.u8", 6, [(1, i) for i in range(8, 16)]),
        ("mma_sp.m16n8k64.f32.e4m3", 7, [(9, i) for i in range(8, 16)]),
        ("wgmma_sp.m64n8k32.f32.f16", 69, [*((33, i) for i in range(4, 8)), *((41, i) for i in range(4, 8))]),
        ("wgmma_sp.m64n8k64.s32.s8", 71, [(41, i) for i in range(8, 16)]),
    ],
)
def test_the_metadata_is_where_the_ptx_manual_has_it(name: str, thread: int, wanted: list[tuple[int, int]]) -> None:
    assert chunks(find(name), thread) == wanted


def test_the_places_of_a_chunk() -> None:
    half, tf32 = find("mma_sp.m16n8k16.f32.f16"), find("mma_sp.m16n8k8.f32.tf32")
    assert kept_places(tf32) == {0b0100: (0,), 0b1110: (1,)}
    assert sorted(kept_places(half).values()) == [(i, j) for i in range(4) for j in range(i + 1, 4)]
    assert all(code == i | j << 2 for code, (i, j) in kept_places(half).items())
