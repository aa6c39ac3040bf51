"""The programs in examples/cute, which have types in the older spelling: they run through the passes and ptxas."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.compiling.stages import compile_ptx
from toolchain.cute.compile import to_ptx
from toolchain.cute.parse import parse
from toolchain.cute.passes import PASSES

PROGRAMS = sorted((Path(__file__).parents[4] / "examples/cute").glob("*.mlir"))


def test_there_are_three_programs() -> None:
    assert [path.stem for path in PROGRAMS] == ["hopper_gemm", "tma_pipeline", "warpgroup_mma"]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_read_in_the_older_spelling_and_compiled(path: Path) -> None:
    text = path.read_text()
    assert "layout<(" in text and 'layout<"' not in text
    module = parse(text, path.name)
    assert '!cute.layout<"(' in str(module)  # printed, it has the newer one
    for name in ("cute-canonicalize", "cute-fold-static", "cute-layout-analysis"):
        PASSES[name](module)
        module.verify()
    ptx = to_ptx(str(module), "sm_90a", name=path.name)
    assert compile_ptx(ptx.encode(), "sm_90a").startswith(b"\x7fELF")
