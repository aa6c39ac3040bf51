"""The parts of copies and products of tiles: which elements an atom moves, how often, and in which order."""

from __future__ import annotations

import pytest

from toolchain.cute.atoms.copy_atom import CopyAtom
from toolchain.cute.layout import Layout, size
from toolchain.cute.passes.parts import atom_values, by_atom, is_split, products, repeats

WIDE = CopyAtom("universal.b64", 16)  # four elements at once


@pytest.mark.parametrize(
    ("layout", "moved", "rest"),
    [
        (Layout((4, 2, 3), (1, 4, 8)), Layout(4), Layout((2, 3), (4, 8))),  # an atom's values as they are
        (Layout((8, 3), (1, 8)), Layout(4), Layout((2, 3), (4, 8))),  # two atoms' values in the first mode
        (Layout(((4, 2), 3), ((1, 4), 8)), Layout(4), Layout((2, 3), (4, 8))),  # already apart
    ],
    ids=["one", "several", "split"],
)
def test_a_copy_moves_what_its_atom_does_and_repeats_the_rest(layout: Layout, moved: Layout, rest: Layout) -> None:
    made = by_atom(layout, WIDE)
    assert size(made) == size(layout)
    for values, wanted in ((atom_values(made), moved), (repeats(made), rest)):
        assert [values(i) for i in range(size(values))] == [wanted(i) for i in range(size(wanted))]
        assert size(values) == size(wanted)


def test_only_a_pair_in_the_first_of_several_modes_is_split() -> None:
    assert is_split(Layout(((4, 2), 3)))
    assert not is_split(Layout((4, 2)))
    assert not is_split(Layout(((4, 2, 2), 3)))


def test_values_of_a_matrix_copy_were_split_before() -> None:
    layout = Layout((8, 3), (1, 8))
    assert by_atom(layout, CopyAtom("ldmatrix.x4", 16)) is layout


def test_products_walk_back_and_forth_along_n_and_take_k_last() -> None:
    d, a = Layout((4, 2, 3)), Layout((8, 2, 2))
    walked = list(products(d, a))
    assert walked[:6] == [(0, 0, 0), (0, 1, 0), (0, 2, 0), (1, 2, 0), (1, 1, 0), (1, 0, 0)]
    assert [(m, n) for m, n, _ in walked[6:]] == [(m, n) for m, n, _ in walked[:6]]
    assert [k for *_, k in walked] == [0] * 6 + [1] * 6
    assert list(products(Layout((4, 1, 1)), Layout((8, 1)))) == [(0, 0, 0)]  # K is left out where it is 1
