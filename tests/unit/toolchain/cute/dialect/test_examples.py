"""The examples of the reference: each is read and printed as it is written."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from xdsl.printer import Printer

from toolchain.cute.parse import parse

FILES = sorted((Path(__file__).parents[5] / "docs/cute-reference").glob("*.mlir"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_printed_as_it_is_read(path: Path) -> None:
    source = path.read_text()
    printed = str(parse(source, path.name)).splitlines()[1:-1]
    wanted = [line for line in source.splitlines() if line and not line.startswith("//")]
    assert [line.removeprefix("  ") for line in printed] == wanted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_generic_form_says_the_same(path: Path) -> None:
    module, text = parse(path.read_text(), path.name), StringIO()
    Printer(stream=text, print_generic_format=True).print_op(module)
    assert str(parse(text.getvalue(), path.name)) == str(module)
