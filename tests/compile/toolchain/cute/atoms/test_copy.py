from __future__ import annotations

import pytest

from tests.compile.toolchain.cute.atoms.copy_kernel import one_copy
from toolchain.compiling.stages import compile_ptx
from toolchain.cute.atoms import MatrixCopyAtom, copies
from toolchain.cute.nvvm import compile_to_ptx
from toolchain.cute.passes import PASSES


@pytest.mark.parametrize("atom", copies().values(), ids=lambda atom: atom.name)
def test_ptxas_takes_the_instruction_of_each_atom(atom: MatrixCopyAtom) -> None:
    module = one_copy(atom)
    PASSES["cute-nvgpu-to-nvvm"](module)
    made = compile_to_ptx(module, f"sm_{atom.arch}")
    assert atom.inline_asm[0].split(" ")[0] in made
    assert compile_ptx(made.encode(), f"sm_{atom.arch}").startswith(b"\x7fELF")
