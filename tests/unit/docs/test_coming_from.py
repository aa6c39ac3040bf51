"""The names in the tables of docs/coming-from.md exist."""

from __future__ import annotations

import re

import pytest

from tilestack.__main__ import parser
from toolchain.knobs import ROOT
from toolchain.tileir.dialect.ops import OPS

PAGE = (ROOT / "docs/coming-from.md").read_text()


def names(column: int) -> list[str]:
    table = PAGE.split("## Kernels")[1].split("Three differences")[0]
    rows = re.findall(r"^\| .* \|$", table, re.MULTILINE)[1:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[column])]


def test_operations_of_tile_ir() -> None:
    found = names(1)
    assert len(found) > 15 and [name for name in found if name not in OPS] == []


@pytest.mark.needs("toolchain")
def test_functions_of_cutile() -> None:
    import cuda.tile as ct

    found = [re.match(r"ct\.(\w+)", name) for name in names(2)]
    assert len(found) > 12 and all(match and hasattr(ct, match[1]) for match in found)


def test_commands() -> None:
    choices = next(action.choices for action in parser()._actions if action.dest == "command" or action.choices)
    assert choices is not None
    used = re.findall(r"`tilestack ([\w-]+)", PAGE)
    assert used and [name for name in used if name not in choices] == []
