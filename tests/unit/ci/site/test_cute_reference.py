"""The reference of the CuTe dialects: it is whole and up to date."""

from __future__ import annotations

import re

import pytest

from ci.site.cute_reference import FOLDER, PAGES, PICTURES, atom_page, coverage_page, index, operations, page
from toolchain.cute import draw

STALE = "write it anew: python -m ci.site --generate"


def test_every_operation_has_one_example() -> None:
    sources = [(FOLDER / f"{name}.mlir").read_text() for name in PAGES]
    named = [name for source in sources for name in re.findall(r"^func\.func @(\w+)", source, re.MULTILINE)]
    assert sorted(named) == sorted(operations())
    assert sorted(path.stem for path in FOLDER.glob("*.md")) == sorted([*PAGES, "index", "mma-atoms", "coverage"])


def test_every_operation_says_what_it_does() -> None:
    assert [name for name, op in operations().items() if len(vars(op)["__doc__"] or "") < 8] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_definitions_say(name: str) -> None:
    assert (FOLDER / f"{name}.md").read_text() == page(name), STALE


def test_the_first_page_and_the_atoms_are_up_to_date() -> None:
    assert (FOLDER / "index.md").read_text() == index(), STALE
    assert (FOLDER / "mma-atoms.md").read_text() == atom_page(), STALE
    assert (FOLDER / "coverage.md").read_text() == coverage_page(), STALE


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_is_drawn(name: str) -> None:
    assert (FOLDER / f"{name}.svg").read_text() == draw.as_svg(PICTURES[name]()), STALE
