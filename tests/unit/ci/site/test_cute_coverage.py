"""The table of what there is of each operation of CuTe: cells that are known from elsewhere."""

from __future__ import annotations

import re

import pytest

from ci.site.cute_coverage import NO, coverage, row
from ci.site.cute_reference import FOLDER, PAGES, operations


def example(name: str) -> str:
    sources = "\n".join((FOLDER / f"{page}.mlir").read_text() for page in PAGES)
    found = re.search(rf"^func\.func @{name}\(.*?^\}}$", sources, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("name", "inferred", "folded", "lowered", "run"),
    [
        ("flatten", "yes", "yes", "`cute-lower`, `cute-to-base`", "yes"),
        ("get_leaves", NO, "yes", "`cute-desugar`, `cute-to-base`", "yes"),
        ("get_iter", "yes", NO, "`cute-lower`", "yes"),  # a place in memory is not known, and has no base level
        ("fill", NO, NO, "`cute-desugar`", "yes"),
        ("mma_sync", NO, NO, "`cute-nvgpu-to-nvvm`", "yes"),
        ("tmem_copy", NO, NO, "`cute-nvgpu-to-nvvm`", NO),
    ],
)
def test_an_operation_has_what_its_passes_do(name: str, inferred: str, folded: str, lowered: str, run: str) -> None:
    kind = operations()[name]
    assert row(kind, example(name), {}) == [f"`{kind.name}`", inferred, "yes", folded, lowered, run, NO]


def test_chunks_are_counted_by_what_became_of_them() -> None:
    cells = row(operations()["flatten"], example("flatten"), {"passed": 3, "failed": 2, "programs": 1})
    assert cells[-1] == "3 passed, 2 failed, 1 programs"


def test_the_head_names_what_fails_and_what_does_not_run() -> None:
    made = coverage("<!-- -->", {name: (operations()[name], example(name)) for name in ("complement", "tmem_copy")})
    assert "some of `cute.complement`. Not run on the executor: `cute_nvgpu.arch.tmem.copy`." in made
