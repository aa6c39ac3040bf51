"""`nox -s new_op` refuses bad names, writes all places or none; and this tree has no unfilled place."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from ci import new_op
from ci.new_op import MARK, left, places, start
from toolchain.errors import UsageError
from toolchain.knobs import ROOT


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with the files that an op is written into, and no others."""
    for place in places():
        path = tmp_path / place.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if not place.new:
            shutil.copy(ROOT / place.path, path)
    return tmp_path


def contents(tree: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in tree.rglob("*") if path.is_file()}


def test_no_op_of_this_tree_is_left_unfinished() -> None:
    found = left()
    assert not found, "fill in, or take back what `nox -s new_op` began:\n" + "\n".join(found)


def test_every_place_is_written_with_its_instruction(tree: Path) -> None:
    found = start("relu", tree)
    assert list(found) == places()
    assert len(found) >= 12
    for place, path in found.items():
        assert f"{MARK}relu): {place.todo.format(name='relu')}" in path.read_text(), place.what
    assert len(left(tree)) == len(found)


def test_what_stood_there_stands_there_still(tree: Path) -> None:
    before = contents(tree)
    start("relu", tree)
    for path, text in before.items():
        rest = iter(path.read_text().splitlines())
        assert all(line in rest for line in text.splitlines()), path


def test_stubs_stand_where_a_formatter_leaves_them(tree: Path) -> None:
    start("relu", tree)
    assert "\n\n\ndef relu" in (tree / "conformance/reference/float64/rows.py").read_text()
    assert "\n\n\ndef relu" in (tree / "benchmarks/peers/torch_ops.py").read_text()
    assert "### Added\n\n- The op `relu`" in (tree / "CHANGELOG.md").read_text()


def test_the_stub_of_a_bug_has_the_fields_of_a_bug() -> None:
    (place,) = (place for place in places() if "/mutations/" in place.path)
    ((part, kernel, _, old, new),) = ast.literal_eval(f"[{place.filled('relu')}]")
    assert (part, kernel) == ("kernel @relu", "relu")
    assert old != new


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Relu", "not a valid name"),
        ("re-lu", "not a valid name"),
        ("../x", "not a valid name"),
        ("lambda", "not a valid name"),
        ("gelu", "an op gelu already"),
    ],
)
def test_other_names_are_refused(name: str, said: str, tree: Path) -> None:
    before = contents(tree)
    with pytest.raises(UsageError, match=said):
        start(name, tree)
    assert contents(tree) == before


def test_nothing_is_written_where_one_place_has_moved(tree: Path) -> None:
    cases = tree / "conformance/cases/rows.py"
    cases.write_text(cases.read_text().replace("\n)\n", "\n]\n"))
    before = contents(tree)
    with pytest.raises(UsageError, match=r"cases/rows\.py: no line reads '\)'(.|\n)*next: say in new_op\.toml"):
        start("relu", tree)
    assert contents(tree) == before


def test_a_file_that_is_gone_is_named(tree: Path) -> None:
    (tree / "conformance/tolerances.toml").unlink()
    with pytest.raises(UsageError, match=r"conformance/tolerances\.toml: not there"):
        start("relu", tree)


def test_a_file_in_the_way_is_kept(tree: Path) -> None:
    kernel = tree / "kernels_py/rows/relu.py"
    kernel.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        start("relu", tree)
    assert kernel.read_text() == "mine"


@pytest.mark.parametrize("words", [[], ["relu", "--left"]])
def test_a_name_or_a_question(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        new_op.main(words)
