"""docs/examples.md names every example, and says truly which operations they use."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from toolchain.knobs import ROOT

PAGE = (ROOT / "docs/examples.md").read_text()
EXAMPLES = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))
CATEGORIES = [
    "load/store", "factory", "shape", "reduction", "scan", "matrix product", "selection", "math", "bitwise",
    "comparison", "atomic", "utility",
]  # fmt: skip
# What is written as ct.NAME and is no operation.
LANGUAGE = {"ByTarget", "Constant", "MemoryOrder", "PaddingMode", "float32", "int32", "kernel"}


def operations(example: Path) -> set[str]:
    """The names written as ct.NAME."""
    nodes = ast.walk(ast.parse(example.read_text()))
    named = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    return {node.attr for node in named if ast.unparse(node.value) == "ct"} - LANGUAGE


def table() -> dict[str, tuple[list[str], list[str]]]:
    """Category to operations and examples, as the page has them."""
    rows = re.findall(r"^\| ([a-z/ ]+) \| (`[^|]+`) \| ([\d ]+) \|$", PAGE, re.MULTILINE)
    return {category: (re.findall(r"`(\w+)`", names), where.split()) for category, names, where in rows}


def test_each_category_has_an_operation() -> None:
    assert list(table()) == CATEGORIES


def test_an_operation_is_listed_once_and_only_if_it_is_used() -> None:
    listed = [name for names, _ in table().values() for name in names]
    assert sorted(listed) == sorted(set().union(*map(operations, EXAMPLES)))


def test_the_examples_of_a_category_are_those_that_use_it() -> None:
    wanted = {
        category: [path.stem[:2] for path in EXAMPLES if operations(path) & set(names)]
        for category, (names, _) in table().items()
    }
    assert {category: where for category, (_, where) in table().items()} == wanted


def test_every_example_is_described() -> None:
    assert re.findall(r"^\| `(\d\d_\w+)` \|", PAGE, re.MULTILINE) == [path.stem for path in EXAMPLES]
