"""The examples of the reference compile for a GPU."""

from __future__ import annotations

import pytest

from ci.site.reference import FOLDER, PAGES
from toolchain.compiling.stages import STAGES
from toolchain.contract.targets import BYTECODE
from toolchain.tileir import bytecode, text

BLACKWELL = ("scaled", "multimem")
NEWER = {"multimem": "13.5"}  # what the bytecode that is compiled by default lacks


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_a_page_compile(name: str) -> None:
    path = FOLDER / f"{name}.mlir"
    (module,) = text.parse_all(path.read_text(), filename=str(path))
    target = "sm_100" if name in BLACKWELL else "sm_90"
    assert STAGES["tile-ir"].run(bytecode.write(module, NEWER.get(name, BYTECODE)), target).startswith(b"\x7fELF")
