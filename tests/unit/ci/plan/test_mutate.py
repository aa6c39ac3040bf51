from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ci.plan.mutate import MLIR, PYTHON, Mutation, chosen, mutations


def said(path: str, text: str) -> list[str]:
    return [f"{each.before} {each.after}".strip() for each in mutations(path, text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("if a < b and not c:\n    pass\n", ["< <=", "and or", "not"]),
        ("x = min(a, 3) + max(b)\n", ["min max", "3 4", "+ -", "max min"]),
        ("def f(*a, b=-1, **c) -> int: return g(*a, *b)\n", ["- +", "1 2"]),
        ("x = a is not None and b not in c\n", ["and or"]),
        ("self.min = a.any()\n", []),
        ("@dataclass(frozen=True)\nclass A:\n    b: bool = True\n", ["True False"]),
        ('"""Words + 3."""  # 4 < 5\nx = 0x10\n', []),
        ("lambda *a: a[1:]\n", ["1 2"]),
        ("x = a if b == 0 else c\n", ["== !=", "0 1"]),
        ("(", []),
    ],
)
def test_the_tokens_of_python_that_are_changed(text: str, wanted: list[str]) -> None:
    assert said("a.py", text) == wanted
    for each in mutations("a.py", text):
        ast.parse(each.apply(text))


def test_the_words_of_a_kernel_that_are_changed() -> None:
    text = "  %a1 = addf %b, %max.2 : !row // + addf\n  %c = constant <i32: 0> : !int\n  repeat I = 2 to 6 {\n"
    assert said("a.mlir", text) == ["addf subf", "0 1", "2 3", "6 7"]
    (first, *_) = mutations("a.mlir", text)
    assert first.apply(text).startswith("  %a1 = subf %b,") and str(first) == "a.mlir:1:9: `addf` becomes `subf`"


def test_a_mutation_changes_one_token_of_one_line() -> None:
    text = "a = 1\r\nb = 2\nc = 3"
    assert Mutation("a.py", 2, 4, 5, "2", "3").apply(text) == "a = 1\r\nb = 3\nc = 3"
    assert "becomes `nothing`" in str(Mutation("a.py", 1, 0, 3, "not", ""))


def test_lines_are_drawn_with_a_seed_each_once(tmp_path: Path) -> None:
    for name in ("a.py", "b.mlir"):
        (tmp_path / name).write_text("x = 1 + 2\n" * 20)
    first = chosen(tmp_path, ["b.mlir", "a.py"], 12, 1)
    assert first == chosen(tmp_path, ["a.py", "b.mlir"], 12, 1) != chosen(tmp_path, ["a.py", "b.mlir"], 12, 2)
    assert len({(each.path, each.line) for each in first}) == 12
    assert len(chosen(tmp_path, ["a.py", "b.mlir"], 100, 1)) == 40


def test_no_token_becomes_itself() -> None:
    assert all(before != after for table in (PYTHON, MLIR) for before, after in table.items())
