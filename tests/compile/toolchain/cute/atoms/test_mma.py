from __future__ import annotations

import pytest

from tests.compile.toolchain.cute.atoms.kernel import one_atom
from toolchain.compiling.stages import compile_ptx
from toolchain.cute.atoms import MmaAtom, atoms
from toolchain.cute.nvvm import compile_to_ptx
from toolchain.cute.passes import PASSES

# tests/compile/toolchain/cute/nvgpu/ has all of them; these are addressed through their layouts.
BY_WARP = [atom for atom in atoms().values() if atom.threads == 32 and not atom.sparse and atom.c != "f16"]


@pytest.mark.parametrize("atom", BY_WARP, ids=lambda atom: atom.name)
def test_ptxas_takes_the_instruction_of_each_atom(atom: MmaAtom) -> None:
    module = one_atom(atom)
    PASSES["cute-nvgpu-to-nvvm"](module)
    made = compile_to_ptx(module, f"sm_{atom.arch}")
    assert atom.instruction in made
    assert compile_ptx(made.encode(), f"sm_{atom.arch}").startswith(b"\x7fELF")
