"""The page of other people's suites."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ci.suites.__main__ import merge, parsed
from ci.suites.checkout import Suite, checkout, files_to_run, suite
from ci.suites.environment import pinned
from ci.suites.page import newly_failed, section, update
from ci.suites.reasons import class_of
from toolchain.errors import UsageError

ONE = Suite("one", "Tests of one", "https://example.org/o/one", "a" * 40, "test", requirements=("cuda-tile[tileiras]",))
ROWS = [
    {"test": "test_b.py::t", "outcome": "passed", "reason": "", "seconds": 60.0},
    {
        "test": "test_b.py::u[1|2]",
        "outcome": "failed",
        "reason": "k_Kt1_A1: the interpreter has no tiles of f4 (/x/y.py:1)",
        "seconds": 59.0,
    },
    {"test": "test_a.py::v", "outcome": "skipped", "reason": "no GPU", "seconds": 1.0},
]


def test_a_section_counts_by_file_and_names_each_failure() -> None:
    text = section(ONE, ROWS, Path("/tree"))
    assert (
        f"`aaaaaaaaaaaa`, with {pinned('cuda-tile')}: 1 passed, 1 skipped, 1 failed, in 2 minutes of one core" in text
    )
    assert text.index("| test_a.py | 0 | 1 | 0 |") < text.index("| test_b.py | 1 | 0 | 1 |")
    assert (
        "| test_b.py: `u[1/2]` | an element type that the interpreter lacks | `k: the interpreter has no tiles" in text
    )
    assert "/x/" not in text


def test_a_row_may_be_a_folder() -> None:
    rows = [{**row, "test": f"a/b/{row['test']}"} for row in ROWS] + [{**ROWS[0], "test": "a/c/d.mlir::line 3"}]
    text = section(replace(ONE, by="folder"), rows, Path("/tree"))
    assert (
        "| folder | passed | skipped | failed |\n|---|---|---|---|\n| a/b | 1 | 1 | 1 |\n| a/c | 1 | 0 | 0 |\n" in text
    )
    assert "| a/b/test_b.py: `u[1/2]` |" in text


def test_a_run_replaces_its_own_section_alone(tmp_path: Path) -> None:
    page = tmp_path / "suites.md"
    update(page, "Tests of one", section(ONE, ROWS, Path("/tree")))
    update(page, "Tests of two", "## Tests of two\n\ntwo\n")
    update(page, "Tests of one", "## Tests of one\n\nagain\n")
    assert page.read_text().count("## ") == 2
    assert page.read_text().endswith("## Tests of one\n\nagain\n\n## Tests of two\n\ntwo\n")


def test_what_fails_by_the_page_is_known_and_what_took_too_long_did_not_fail(tmp_path: Path) -> None:
    page = tmp_path / "suites.md"
    update(page, ONE.title, section(ONE, ROWS, Path("/tree")))
    late = {**ROWS[1], "test": "test_c.py::slow", "reason": "Failed: Timeout (>60.0s)"}
    assert newly_failed(ONE, [*ROWS, late], page) == []
    new = {**ROWS[1], "test": "test_b.py::other", "reason": "a wrong\nvalue"}
    assert newly_failed(ONE, [*ROWS, new], page) == ["test_b.py: `other`: a wrong value"]
    assert len(newly_failed(ONE, ROWS, tmp_path / "none.md")) == 1


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("SanitizerError: k: a race", "stopped by the sanitizer"),
        ("Failed: Timeout (>60.0s)", "took too long"),
        ("ImportError: cannot import name", "a module that is not installed"),
        ("AssertionError: taken, though it is wrong: x", "taken, though their tools refuse it"),
        ("SourceError: a.mlir:1:2: error: expected an operation, found '{'", "attributes beside an operation's own"),
        ("something", "other"),
    ],
)
def test_a_reason_has_a_class(reason: str, name: str) -> None:
    assert class_of("test_a.py::t", reason) == name


def test_an_unknown_suite_and_a_mirror_without_it_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no suite 'none'"):
        suite("none")
    with pytest.raises(UsageError, match="has no copy of NVIDIA/cutile-python"):
        checkout(suite("cutile"), tmp_path, tmp_path)


def test_a_sparse_suite_is_its_folder_alone(tmp_path: Path) -> None:
    source = tmp_path / "o+one" / "repo"
    for name in ("tests/a.mlir", "media/large.png"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("x")
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    tree = checkout(replace(ONE, commit=commit, folder="tests", sparse=True), tmp_path, tmp_path)
    assert (tree / "tests/a.mlir").is_file()
    assert not (tree / "media").exists()


def test_files_that_run_again_replace_their_own_rows(tmp_path: Path) -> None:
    record, now = tmp_path / "all", tmp_path / "now"
    record.write_text("".join(json.dumps({"test": test}) + "\n" for test in ("a::x", "a::gone", "b::y")))
    now.write_text(json.dumps({"test": "a::x"}) + "\n")
    merge(record, now, again=True)
    assert [json.loads(line)["test"] for line in record.read_text().splitlines()] == ["b::y", "a::x"]
    merge(record, now, again=False)
    assert record.read_text() == now.read_text()


def test_words_for_pytest_stand_behind_another_dash() -> None:
    given = parsed(["cutile", "--jobs", "1", "--files", "a.py", "b.py", "--", "-k", "add"])
    assert (given.suite, given.files, given.words) == ("cutile", ["a.py", "b.py"], ["-k", "add"])
    assert parsed(["tilegym"]).words == []


def test_files_may_be_named_as_the_page_does_or_from_the_folder(tmp_path: Path) -> None:
    for name in ("samples/test_s.py", "test/test_a.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    given = ["samples/test_s.py", "../samples/test_s.py", "test/test_a.py::t[a::b]", "test_a.py"]
    sample, own = "../samples/test_s.py", "test_a.py"
    assert files_to_run(ONE, tmp_path, given) == [sample, sample, f"{own}::t[a::b]", own]
    assert files_to_run(ONE, tmp_path, []) == ["."]
    with pytest.raises(UsageError, match=r"one has no file test_c\.py"):
        files_to_run(ONE, tmp_path, ["test_c.py"])
