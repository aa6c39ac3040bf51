from __future__ import annotations

import pytest

from tests.unit.toolchain.cute.nvvm.test_ptx import KERNEL
from toolchain.compiling.stages import compile_ptx
from toolchain.cute.nvvm import PTX_VERSIONS, compile_to_ptx


@pytest.mark.parametrize("arch", PTX_VERSIONS)
def test_ptxas_takes_the_ptx_of_every_architecture(arch: str) -> None:
    made = compile_to_ptx(KERNEL, arch)
    assert compile_ptx(made.encode(), arch.rstrip("a")).startswith(b"\x7fELF")
