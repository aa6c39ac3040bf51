from __future__ import annotations

import pytest

from toolchain.cute.atoms import MmaAtom, atoms, find
from toolchain.cute.layout import size
from toolchain.errors import UsageError

BY_WARP = [atom for atom in atoms().values() if atom.threads == 32]


def coordinates(atom: MmaAtom, operand: str, thread: int) -> list[tuple[int, int]]:
    """The rows and columns of the values of a thread, in order."""
    layout, rows = atom.layout(operand), atom.tile(operand)[0]
    offsets = [layout((thread, value)) for value in range(size(layout[1]))]
    return [(offset % rows, offset // rows) for offset in offsets]


WIDE = [find(f"wgmma.m64n{n}k16.f32.bf16") for n in (8, 64, 248)]
REGISTERS_A = [
    find(f"wgmma_rs.m64n16k{k}.{c}.{ab}")
    for k, c, ab in ((16, "f32", "f16"), (8, "f32", "tf32"), (32, "f32", "e4m3"), (32, "s32", "u8"))
]


@pytest.mark.parametrize("atom", [*BY_WARP, *WIDE, *REGISTERS_A], ids=lambda atom: atom.name)
def test_the_threads_hold_each_element_once(atom: MmaAtom) -> None:
    for operand in "abc" if atom.b_layout else "ac" if atom.a_layout else "c":
        layout = atom.layout(operand)
        rows, columns = atom.tile(operand)
        assert sorted(layout(i) for i in range(size(layout))) == list(range(rows * columns))
        assert size(layout[0]) == atom.threads


@pytest.mark.parametrize("lane", [0, 1, 5, 31])
def test_the_fragments_of_m16n8k16_are_those_of_the_ptx_manual(lane: int) -> None:
    atom, group, inside = find("mma.m16n8k16.f32.bf16"), lane // 4, lane % 4
    a = [(group + 8 * (i // 2 % 2), inside * 2 + i % 2 + 8 * (i // 4)) for i in range(8)]
    b = [(group, inside * 2 + i % 2 + 8 * (i // 2)) for i in range(4)]
    c = [(group + 8 * (i // 2), inside * 2 + i % 2) for i in range(4)]
    assert [coordinates(atom, operand, lane) for operand in "abc"] == [a, b, c]


@pytest.mark.parametrize("lane", [0, 6, 31])
def test_the_fragments_of_m16n8k32_s8_are_those_of_the_ptx_manual(lane: int) -> None:
    atom, group, inside = find("mma.m16n8k32.s32.s8"), lane // 4, lane % 4
    a = [(group + 8 * (i // 4 % 2), inside * 4 + i % 4 + 16 * (i // 8)) for i in range(16)]
    b = [(group, inside * 4 + i % 4 + 16 * (i // 4)) for i in range(8)]
    assert [coordinates(atom, operand, lane) for operand in "ab"] == [a, b]


@pytest.mark.parametrize("lane", [0, 7, 31])
def test_the_fragments_of_m16n8k8_tf32_are_those_of_the_ptx_manual(lane: int) -> None:
    atom, group, inside = find("mma.m16n8k8.f32.tf32"), lane // 4, lane % 4
    assert coordinates(atom, "a", lane) == [(group + 8 * (i % 2), inside + 4 * (i // 2)) for i in range(4)]
    assert coordinates(atom, "b", lane) == [(group, inside + 4 * i) for i in range(2)]


@pytest.mark.parametrize("lane", [0, 6, 31])
def test_the_fragments_of_m16n8k64_s4_are_those_of_the_ptx_manual(lane: int) -> None:
    atom, group, inside = find("mma.m16n8k64.s32.s4"), lane // 4, lane % 4
    a = [(group + 8 * (i // 8 % 2), inside * 8 + i % 8 + 32 * (i // 16)) for i in range(32)]
    b = [(group, inside * 8 + i % 8 + 32 * (i // 8)) for i in range(16)]
    assert [coordinates(atom, operand, lane) for operand in "ab"] == [a, b]
    assert [atom.registers(operand) for operand in "abc"] == [4, 2, 4]


@pytest.mark.parametrize("lane", [0, 6, 31])
def test_the_fragments_of_m8n8k4_f64_are_those_of_the_ptx_manual(lane: int) -> None:
    atom, group, inside = find("mma.m8n8k4.f64.f64"), lane // 4, lane % 4
    made = [coordinates(atom, operand, lane) for operand in "abc"]
    assert made == [[(group, inside)], [(group, inside)], [(group, 2 * inside + i) for i in range(2)]]
    assert atom.inline_asm == (
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {$0, $1}, {$2}, {$3}, {$4, $5};", "=d,=d,d,d,d,d"
    )  # fmt: skip


@pytest.mark.parametrize("thread", [0, 33, 127])
def test_an_accumulator_of_wgmma_has_16_rows_in_each_warp(thread: int) -> None:
    atom, warp, lane = find("wgmma.m64n128k16.f32.bf16"), thread // 32, thread % 32
    wanted = [(16 * warp + lane // 4 + 8 * (i // 2 % 2), lane % 4 * 2 + i % 2 + 8 * (i // 4)) for i in range(64)]
    assert coordinates(atom, "c", thread) == wanted


@pytest.mark.parametrize("thread", [0, 33, 127])
def test_an_operand_a_in_registers_is_that_of_the_ptx_manual(thread: int) -> None:
    atom, warp, lane = find("wgmma_rs.m64n128k16.f32.bf16"), thread // 32, thread % 32
    wanted = [(16 * warp + lane // 4 + 8 * (i // 2 % 2), lane % 4 * 2 + i % 2 + 8 * (i // 4)) for i in range(8)]
    assert coordinates(atom, "a", thread) == wanted
    assert atom.registers("a") == 4


def test_a_sparse_a_has_half_of_k() -> None:
    atom = find("mma_sp.m16n8k32.f32.bf16")
    assert (atom.tile("a"), atom.tile("b")) == ((16, 16), (8, 32))
    assert atom.instruction == "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"


@pytest.mark.parametrize("atom", BY_WARP, ids=lambda atom: atom.name)
def test_the_assembly_names_each_register_once(atom: MmaAtom) -> None:
    text, constraints = atom.inline_asm
    registers = [atom.registers(operand) for operand in "cabc"]
    count = sum(registers) + atom.sparse  # the metadata
    assert len(constraints.split(",")) == count
    assert [f"${i}" in text for i in range(count + 1)] == [True] * count + [False]
    assert registers[0] == (2 if atom.c in ("f16", "f64") else 4)


def test_an_atom_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"no MMA atom 'mma\.m8n8k4'"):
        find("mma.m8n8k4")
    with pytest.raises(UsageError, match="has no thread-value layout of 'a'"):
        find("wgmma.m64n8k16.f32.f16").layout("a")
    with pytest.raises(UsageError, match="descriptors"):
        _ = find("wgmma.m64n8k16.f32.f16").inline_asm
