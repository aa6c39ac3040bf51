"""docs/python.md lists every name of `import tilestack`, with the first sentence of what it says of itself."""

from __future__ import annotations

import inspect
import re

import pytest

import tilestack as ts
from toolchain.knobs import ROOT

PAGE = (ROOT / "docs/python.md").read_text()


def first_sentence(name: str) -> str:
    doc = inspect.getdoc(getattr(ts, name)) or ""
    return re.split(r"\.(?:\s|$)", doc)[0].replace("\n", " ") + "."


def test_the_table_has_every_name() -> None:
    table = re.findall(r"^\| `ts\.(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)
    assert table == [(name, first_sentence(name)) for name in ts.__all__]


@pytest.mark.parametrize("page", ["docs/python.md", "docs/python-torch.md", "README.md"])
def test_every_name_of_a_page_exists(page: str) -> None:
    used = set(re.findall(r"\bts\.(\w+)", (ROOT / page).read_text()))
    assert used and used - set(ts.__all__) == set()
