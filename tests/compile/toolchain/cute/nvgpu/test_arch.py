"""The pinned ptxas takes every instruction of `cute_nvgpu.arch`, for the oldest target that has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.compile.toolchain.cute.nvgpu.instructions import every_instruction, forms
from tests.compile.toolchain.cute.nvgpu.registers import two_products
from toolchain.compiling.stages import compile_ptx
from toolchain.cute.compile import lower_module
from toolchain.cute.nvgpu import ARCH
from toolchain.cute.nvvm import compile_to_ptx
from toolchain.pinned.tools import tool

TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_100a")


@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_takes_every_instruction(target: str) -> None:
    module = every_instruction(target)
    module.verify()
    made = compile_to_ptx(lower_module(module), target)
    assert made.count(".visible .entry") == len(list(forms(target)))
    assert compile_ptx(made.encode(), target).startswith(b"\x7fELF")


def test_each_instruction_has_one_of_these_targets() -> None:
    assert {name for target in TARGETS for name, *_ in forms(target)} == ARCH.keys()


def test_an_a_that_is_kept_is_not_computed_between_products(tmp_path: Path) -> None:
    cubin = tmp_path / "k.cubin"
    cubin.write_bytes(compile_ptx(two_products().ptx("sm_90a").encode(), "sm_90a"))
    code = tool("nvdisasm").run(["--print-code", str(cubin)]).stdout
    products = re.findall(r"WARPGROUP\.ARRIVE|HGMMA", code)
    assert products == ["WARPGROUP.ARRIVE", *["HGMMA"] * 4] * 2
