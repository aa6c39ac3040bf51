"""Each atom of a warp: the one-warp kernels of tests/compile, which a GPU has run, give what numpy does."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import i32

from tests.compile.toolchain.cute.atoms.copy_kernel import one_copy
from tests.compile.toolchain.cute.atoms.kernel import one_atom
from toolchain.cute import dsl as cute
from toolchain.cute.atoms import MatrixCopyAtom, MmaAtom, atoms, copies
from toolchain.cute.dsl import arch
from toolchain.cute.executor import DivergentBarrier, run
from toolchain.cute.executor.instructions.matrices import DTYPES
from toolchain.cute.layout import Layout, size
from toolchain.cute.nvvm import compile_to_ptx
from toolchain.cute.passes import PASSES

BY_WARP = [atom for atom in atoms().values() if atom.threads == 32 and not atom.sparse and atom.c != "f16"]

HELD = {"s4": np.int8, "u4": np.uint8}  # in memory


@pytest.mark.parametrize("atom", BY_WARP, ids=lambda atom: atom.name)
def test_a_product_of_one_warp(atom: MmaAtom) -> None:
    rng = np.random.default_rng(1)
    low = 0 if atom.ab in ("u8", "u4") else -4
    a, b = (rng.integers(low, 5, atom.tile(operand)) for operand in "ab")  # exact in every dtype
    c = rng.integers(-9, 10, atom.tile("c"))
    held = [
        np.asfortranarray(x).T.astype(HELD.get(dtype) or DTYPES[dtype]).copy()
        for x, dtype in ((a, atom.ab), (b, atom.ab), (c, atom.c))
    ]
    d = np.zeros_like(held[2])
    run(one_atom(atom), (*held, d))
    assert (d.T.astype(np.int64) == a @ b.T + c).all()


@pytest.mark.parametrize("name", ["mma.m16n8k16.f32.bf16", "mma.m16n8k64.s32.s4", "mma.m8n8k4.f64.f64"])
def test_a_product_of_one_warp_in_ptx(name: str) -> None:
    atom, rng = atoms()[name], np.random.default_rng(1)
    a, b, c = (rng.integers(-4, 5, atom.tile(operand)) for operand in "abc")
    kinds = HELD.get(atom.ab) or DTYPES[atom.ab], DTYPES[atom.c]
    held = [np.asfortranarray(x).T.astype(kind).copy() for x, kind in ((a, kinds[0]), (b, kinds[0]), (c, kinds[1]))]
    d, module = np.zeros_like(held[2]), one_atom(atom)
    PASSES["cute-nvgpu-to-nvvm"](module)
    run(compile_to_ptx(module, f"sm_{atom.arch}"), (*held, d))
    assert (d.T.astype(np.int64) == a @ b.T + c).all()


@pytest.mark.parametrize("atom", copies().values(), ids=lambda atom: atom.name)
def test_a_matrix_copy_of_one_warp(atom: MatrixCopyAtom) -> None:
    rows, columns = atom.tile
    layout = atom.layout("registers")
    values = size(layout[1])
    tile = np.arange(rows * columns, dtype=np.int16).reshape(rows, columns)
    of_threads = np.array(
        [[tile.T.reshape(-1)[layout((thread, value))] for value in range(values)] for thread in range(32)], np.int16
    )
    got = [tile.copy(), np.zeros_like(of_threads)] if atom.load else [np.zeros_like(tile), of_threads.copy()]
    run(one_copy(atom), got)
    assert (got[0] == tile).all() and (got[1] == of_threads).all()


def test_tf32_reads_19_bits() -> None:
    atom = atoms()["mma.m16n8k4.f32.tf32"]
    a, b = np.zeros((4, 16), np.float32), np.zeros((4, 8), np.float32)
    a[0, 0], b[0, 0] = 1 + 2.0**-10 + 2.0**-11, 1
    c = np.zeros((8, 16), np.float32)
    d = np.zeros_like(c)
    run(one_atom(atom), (a, b, c, d))
    assert d[0, 0] == 1 + 2.0**-10


@cute.kernel(threads=8)
def narrow() -> None:
    shared = cute.shared_tensor("f16", Layout(64))
    arch.instruction("copy.ldmatrix", cute.address(shared), results=[i32], atom="ldmatrix.x1")


def test_a_warp_that_is_not_whole() -> None:
    with pytest.raises(DivergentBarrier, match="32 threads of a warp do this together, and this one has 8"):
        run(narrow, ())
