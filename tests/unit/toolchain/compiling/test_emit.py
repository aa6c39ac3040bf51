"""Which forms an artifact takes. That its commands do what they say: tests/compile/tilestack/cli/test_assemble.py."""

from __future__ import annotations

import pytest

from toolchain.compiling.emit import check_form
from toolchain.contract.artifact import ptx, tile_ir
from toolchain.errors import UsageError

TILE_IR = tile_ir(b"", "13.4")
PTX = ptx(".target sm_90", block=(32, 1, 1))


def test_forms_that_there_are() -> None:
    for form in ("mlir", "bytecode"):
        check_form(form, None, TILE_IR, "k")
    check_form("ptx", None, PTX, "k")
    for artifact in (TILE_IR, PTX):
        for form in ("cubin", "sass"):
            check_form(form, "sm_90", artifact, "k")


def test_ptx_has_no_tile_ir_and_tile_ir_no_ptx() -> None:
    for form in ("mlir", "bytecode"):
        with pytest.raises(UsageError, match="k is ptx, which has no Tile IR\n  next: --emit ptx"):
            check_form(form, None, PTX, "k")
    with pytest.raises(UsageError, match=r"k is Tile IR; tileiras .* hands out no PTX"):
        check_form("ptx", None, TILE_IR, "k")
