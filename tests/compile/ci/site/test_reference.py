"""The examples of the reference compile for a GPU."""

from __future__ import annotations

import pytest

from ci.site.reference import FOLDER, PAGES
from toolchain.compiling.stages import STAGES
from toolchain.contract.targets import BYTECODE
from toolchain.tileir import bytecode, text

BLACKWELL = ("scaled",)


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_a_page_compile(name: str) -> None:
    path = FOLDER / f"{name}.mlir"
    (module,) = text.parse_all(path.read_text(), filename=str(path))
    target = "sm_100" if name in BLACKWELL else "sm_90"
    assert STAGES["tile-ir"].run(bytecode.write(module, BYTECODE), target).startswith(b"\x7fELF")
