from __future__ import annotations

import pytest

from toolchain.cute.atoms import MatrixCopyAtom, copies, find_copy
from toolchain.cute.layout import size
from toolchain.errors import UsageError

ALL = pytest.mark.parametrize("atom", copies().values(), ids=lambda atom: atom.name)


@ALL
def test_rows_and_registers_hold_each_element_once(atom: MatrixCopyAtom) -> None:
    for operand in ("rows", "registers"):
        layout = atom.layout(operand)
        assert sorted(layout(i) for i in range(size(layout))) == list(range(atom.count * 64))


@ALL
def test_a_register_holds_two_elements_of_its_matrix(atom: MatrixCopyAtom) -> None:
    rows = atom.tile[0]
    for thread in (0, 5, 31):
        for value in range(2 * atom.count):
            offset = atom.layout("registers")((thread, value))
            along, across = thread // 4, thread % 4 * 2 + value % 2
            row, column = (across, along) if atom.transposed else (along, across)
            assert (offset % rows, offset // rows) == (row + 8 * (value // 2), column)


@ALL
def test_the_assembly_names_each_register_once(atom: MatrixCopyAtom) -> None:
    text, constraints = atom.inline_asm
    assert [f"${i}" in text for i in range(atom.count + 2)] == [True] * (atom.count + 1) + [False]
    assert constraints.count("=r") == (atom.count if atom.load else 0)
    assert len(constraints.split(",")) == atom.count + 1


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no copy atom 'ldmatrix\.x3'"):
        find_copy("ldmatrix.x3")
    with pytest.raises(UsageError, match="no operand 'a'"):
        find_copy("ldmatrix.x4").layout("a")
