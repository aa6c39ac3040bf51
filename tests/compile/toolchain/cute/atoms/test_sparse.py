from __future__ import annotations

import pytest

from tests.compile.toolchain.cute.atoms.sparse_kernel import CASES, STEPS, sparse_product
from toolchain.compiling.stages import compile_ptx
from toolchain.cute.atoms import find


@pytest.mark.parametrize(("name", "majors"), CASES)
def test_a_sparse_product_of_a_warpgroup_becomes_a_cubin(name: str, majors: str) -> None:
    atom = find(f"wgmma_sp.{name}")
    made = sparse_product(atom, majors).ptx("sm_90a")
    assert made.count(atom.instruction) == STEPS
    assert compile_ptx(made.encode(), "sm_90a").startswith(b"\x7fELF")
