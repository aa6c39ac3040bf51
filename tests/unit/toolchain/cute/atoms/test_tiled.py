"""Tiled atoms: each element is held by the threads that the atom's own layout says, and copies agree with products."""

from __future__ import annotations

from collections import Counter

import pytest

from toolchain.cute.atoms import find
from toolchain.cute.atoms.copy_atom import CopyAtom
from toolchain.cute.atoms.tiled import (
    TiledMma,
    accumulator_as_a,
    make_tiled_copy,
    make_tiled_copy_like,
    make_tiled_mma,
    retile,
)
from toolchain.cute.layout import Layout, size
from toolchain.errors import UsageError

MMA = make_tiled_mma(find("mma.m16n8k16.f32.bf16"), (2, 2, 1), (None, Layout((8, 2, 2), (1, 16, 8)), None))
PLAIN = make_tiled_mma(find("mma.m16n8k16.f32.bf16"), (2, 1, 1))


@pytest.mark.parametrize(("operand", "tile", "holders"), [("a", (64, 32), 2), ("b", (64, 32), 2), ("c", (64, 64), 1)])
def test_each_element_has_its_holders(operand: str, tile: tuple[int, int], holders: int) -> None:
    thread, values = MMA.partition(operand, Layout(tile))
    held = Counter(thread(t) + values(v) for t in range(MMA.thread_count) for v in range(size(values)))
    assert held == dict.fromkeys(range(tile[0] * tile[1]), holders)


def test_the_second_warp_holds_the_next_atom_along_m() -> None:
    thread, values = PLAIN.partition("c", Layout((32, 8), (8, 1)))
    atom = PLAIN.atom.layout("c")
    for lane in (0, 5, 31):
        for value in range(size(values)):
            index = atom((lane, value))
            row, column = index % 16, index // 16
            assert thread(lane) + values(value) == row * 8 + column
            assert thread(32 + lane) + values(value) == (row + 16) * 8 + column


@pytest.mark.parametrize(("operand", "atom"), [("a", "ldmatrix.x4"), ("b", "ldmatrix.x4"), ("b", "ldmatrix.x4.trans")])
def test_a_copy_fills_the_registers_that_the_product_reads(operand: str, atom: str) -> None:
    read, whole = make_tiled_copy_like(CopyAtom(atom, 16), MMA, operand), Layout((64, 32))
    thread, computed = MMA.partition(operand, whole)
    copied_thread, copied = read.partition("D", whole)
    registers = Layout(computed.shape)
    view = retile(copied, computed, registers)
    for t in (0, 1, 37, 127):
        held = {registers(v): thread(t) + computed(v) for v in range(size(computed))}
        assert {view(v): copied_thread(t) + copied(v) for v in range(size(copied))} == held


def test_a_thread_names_a_row_of_the_matrices() -> None:
    read = make_tiled_copy_like(CopyAtom("ldmatrix.x4", 16), PLAIN, "a")
    thread, values = read.partition("S", Layout((32, 16), (16, 1)))
    assert [values(v) for v in range(8)] == list(range(8))
    starts = {thread(t) for t in range(32)}
    assert starts == {row * 16 + half * 8 for row in range(16) for half in range(2)}


def test_threads_copy_vectors_side_by_side() -> None:
    tiled = make_tiled_copy(CopyAtom("cp.async.b128", 16), Layout((8, 4), (4, 1)), Layout((1, 8)))
    assert tiled.tiler == (8, 32)
    thread, values = tiled.partition("S", Layout((16, 32), (32, 1)))
    assert [thread(t) for t in range(5)] == [0, 8, 16, 24, 32]
    assert values((0, 1, 0)) == 8 * 32


@pytest.mark.parametrize(
    ("sums", "product", "groups"),
    [
        ("mma.m16n8k16.f32.bf16", "mma.m16n8k16.f32.bf16", (2, 1, 1)),
        ("wgmma.m64n64k16.f32.bf16", "wgmma_rs.m64n32k16.f32.bf16", (1, 1, 1)),
    ],
)
def test_an_accumulator_is_the_next_a(sums: str, product: str, groups: tuple[int, int, int]) -> None:
    whole = Layout((64, 64))
    first, second = (make_tiled_mma(find(name), groups) for name in (sums, product))
    made_thread, made = first.partition("c", whole)
    wanted_thread, wanted = second.partition("a", whole)
    registers = Layout(made.shape)
    a = accumulator_as_a(registers)
    for t in (0, 5, first.thread_count - 1):
        held = {registers(i): made_thread(t) + made(i) for i in range(size(made))}
        assert [held[a(i)] for i in range(size(a))] == [wanted_thread(t) + wanted(i) for i in range(size(wanted))]
    with pytest.raises(UsageError, match="no accumulator"):
        accumulator_as_a(Layout((4, 1, 1)))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="no whole number of atoms along N"):
        TiledMma(find("mma.m16n8k16.f32.bf16"), Layout((1, 2, 1)), (None, 24, None))
    with pytest.raises(UsageError, match="elements of 16 bits"):
        CopyAtom("ldmatrix.x4", 32)
    with pytest.raises(UsageError, match="no copy atom"):
        CopyAtom("cp.async.b16", 16)
