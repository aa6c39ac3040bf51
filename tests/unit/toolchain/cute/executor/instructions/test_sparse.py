"""Products with a sparse A, of a warp and of a warpgroup, against numpy; every chunk keeps places of its own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compile.toolchain.cute.atoms import sparse_gemm
from tests.compile.toolchain.cute.atoms.kernel import one_atom
from tests.compile.toolchain.cute.atoms.sparse_kernel import CASES, STEPS, Array, sparse_numbers, sparse_product
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.cute import dsl as cute
from toolchain.cute.atoms import MmaAtom, atoms, find
from toolchain.cute.atoms.mma import BITS
from toolchain.cute.dsl import Kernel
from toolchain.cute.executor import Finding, MissingFence, MissingWait, Undefined, run
from toolchain.cute.executor.instructions.matrices import DTYPES
from toolchain.errors import UsageError

BY_WARP = [atom for atom in atoms().values() if atom.threads == 32 and atom.sparse]
SMALL = find("wgmma_sp.m64n8k32.f32.bf16")


@pytest.mark.parametrize("atom", BY_WARP, ids=lambda atom: atom.name)
def test_a_product_of_one_warp(atom: MmaAtom) -> None:
    rng = np.random.default_rng(2)
    dense, kept, metadata, b = sparse_numbers(rng, atom)
    c = rng.integers(-9, 10, atom.tile("c"))
    assert (of_warp(atom, kept, metadata, b, c) == dense @ b.astype(np.int64).T + c).all()


def of_warp(atom: MmaAtom, kept: Array, metadata: Array, b: Array, c: Array) -> Array:
    """D of one warp."""
    held = [np.ascontiguousarray(x.T) for x in (kept, b, c.astype(DTYPES[atom.c]))]
    d = np.zeros_like(held[2])
    run(one_atom(atom), (*held, d, metadata[0]))
    return d.T


def of_warpgroup(atom: MmaAtom, kernel: Kernel, kept: Array, metadata: Array, b: Array) -> Array:
    """D of one warpgroup."""
    registers = np.zeros((64, atom.n * BITS[atom.c] // 32), np.float32 if atom.c == "f32" else np.int32)
    run(kernel, (kept, b, metadata, registers))
    return registers.view(DTYPES[atom.c])


@pytest.mark.parametrize(("name", "majors"), CASES)
def test_a_product_of_a_warpgroup(name: str, majors: str) -> None:
    atom = find(f"wgmma_sp.{name}")
    dense, kept, metadata, b = sparse_numbers(np.random.default_rng(3), atom, STEPS)
    found = of_warpgroup(atom, sparse_product(atom, majors), kept, metadata, b)
    assert (found == dense @ b.astype(np.int64).T).all()


def test_what_no_kept_value_meets_is_not_read() -> None:
    # An H100 does the same: a zero of A that is not stored makes no NaN of an infinity in B.
    _, kept, metadata, b = sparse_numbers(np.random.default_rng(4), SMALL, STEPS)
    metadata[:] = 0x4444_4444  # the first two of each four
    b[:, 2::4], b[:, 3::4] = np.inf, np.nan
    found = of_warpgroup(SMALL, sparse_product(SMALL), kept, metadata, b)
    met = b.reshape(8, -1, 4)[:, :, :2].reshape(8, -1)
    assert (found == kept.astype(np.int64) @ met.astype(np.int64).T).all()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("mma_sp.m16n8k16.f32.f16", 0b0000),
        ("mma_sp.m16n8k32.f32.bf16", 0b0001),
        ("mma_sp.m16n8k32.s32.s8", 0b1010),
        ("mma_sp.m16n8k64.f32.e5m2", 0b0110),
        ("mma_sp.m16n8k16.f32.tf32", 0b1000),
    ],
)
def test_metadata_of_a_warp_without_a_meaning(name: str, code: int) -> None:
    atom, rng = find(name), np.random.default_rng(4)
    _, kept, metadata, b = sparse_numbers(rng, atom)
    metadata[0, 4] = metadata[0, 4] & ~(0xF << 8) | code << 8  # row 1, its third chunk
    columns = "4 to 5" if atom.ab == "tf32" else "8 to 11"
    said = rf"thread 4: the metadata of row 1 of A, columns {columns}, is 0b{code:04b}; .* 0b0100, "
    with pytest.raises(Undefined, match=said):
        of_warp(atom, kept, metadata, b, np.zeros((16, 8), np.int64))


def test_metadata_of_a_warpgroup_without_a_meaning() -> None:
    _, kept, metadata, b = sparse_numbers(np.random.default_rng(5), SMALL, STEPS)
    metadata[2, 97] |= -1 << 28
    said = (
        r"mma.wgmma_sp at .*thread 97: the metadata of row 56 of A, columns 28 to 31, is 0b1111; two places in ascend"
    )
    with pytest.raises(Undefined, match=said):
        of_warpgroup(SMALL, sparse_product(SMALL), kept, metadata, b)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("fence.proxy_async", MissingFence), ("wgmma.wait_group", MissingWait), ("wgmma.commit_group", MissingWait)],
)
def test_a_missing_operation(name: str, wanted: type[Finding]) -> None:
    _, kept, metadata, b = sparse_numbers(np.random.default_rng(6), SMALL, STEPS)
    mistaken = without(sparse_product(SMALL), f"cute_nvgpu.arch.{name}")
    with pytest.raises(wanted):
        of_warpgroup(SMALL, mistaken, kept, metadata, b)


GEMM = ("mma_sp.m16n8k32.f32.bf16", "mma_sp.m16n8k16.f32.tf32", "mma_sp.m16n8k64.s32.s8", "wgmma_sp.m64n8k32.f32.f16")


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("name", GEMM)
def test_a_product_of_many_atoms(name: str, adds: bool) -> None:
    atom = find(name)
    rng = np.random.default_rng(5)
    dense, kept, metadata, b = sparse_gemm.numbers(rng, atom, DTYPES[atom.ab])
    before = rng.integers(-9, 10, (dense.shape[0], b.shape[0])).astype(DTYPES[atom.c])
    d = before.copy()
    run(sparse_gemm.sparse_gemm(atom, adds=adds), (kept, b, metadata, d))
    assert (d == dense @ b.astype(np.int64).T + before * adds).all()


def _multiply(atom: MmaAtom, words: tuple[int, ...] | None) -> None:
    mma = cute.make_tiled_mma(atom, (1, 1, 1))

    @cute.kernel(threads=atom.threads, name="refused")
    def _kernel() -> None:
        d, a, b = (cute.make_fragment(shape, dtype) for shape, dtype in (((4, 1, 1), "f32"), *[((8, 1), "bf16")] * 2))
        metadata = None if words is None else cute.make_fragment(words, "i32")
        cute.gemm(mma, d, a, b, d, metadata=metadata)


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("mma_sp.m16n8k32.f32.bf16", None, "takes metadata, of i32, as its last operand"),
        ("mma_sp.m16n8k32.f32.bf16", (1, 2), r"A is 1 x 1 atoms; its metadata .* is not"),
        ("mma.m16n8k16.f32.bf16", (1, 1), "takes no metadata"),
    ],
)
def test_metadata_that_does_not_fit(name: str, words: tuple[int, ...] | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        _multiply(find(name), words)
