from __future__ import annotations

import pytest

from tests.compile.toolchain.cute.atoms.sparse_gemm import sparse_gemm
from tests.compile.toolchain.cute.atoms.sparse_kernel import CASES, STEPS, sparse_product
from toolchain.compiling.stages import compile_ptx
from toolchain.cute.atoms import find
from toolchain.cute.atoms.mma import WARP


@pytest.mark.parametrize(("name", "majors"), CASES)
def test_a_sparse_product_of_a_warpgroup_becomes_a_cubin(name: str, majors: str) -> None:
    atom = find(f"wgmma_sp.{name}")
    made = sparse_product(atom, majors).ptx("sm_90a")
    assert made.count(atom.instruction) == STEPS
    assert compile_ptx(made.encode(), "sm_90a").startswith(b"\x7fELF")


@pytest.mark.parametrize("name", ["mma_sp.m16n8k32.f32.bf16", "wgmma_sp.m64n8k32.f32.f16"])
def test_a_sparse_product_of_many_atoms_becomes_a_cubin(name: str) -> None:
    atom = find(name)
    target = "sm_80" if atom.threads == WARP else "sm_90a"
    made = sparse_gemm(atom, adds=True).ptx(target)
    assert made.count(atom.instruction) == (8 if atom.threads == WARP else 16)
    assert compile_ptx(made.encode(), target).startswith(b"\x7fELF")
