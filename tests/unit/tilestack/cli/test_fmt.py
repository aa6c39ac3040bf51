from __future__ import annotations

import io
from pathlib import Path

import pytest

from ..conftest import ADD_ONE, Run

UGLY = ADD_ONE.replace("    ", "\t  ")


def test_fmt_changes_what_needs_it(run: Run, add_one: Path) -> None:
    assert run("fmt", add_one) == (0, "", "0 of 1 files changed\n")
    add_one.write_text(UGLY)
    (add_one.parent / "below").mkdir()
    (add_one.parent / "below" / "same.mlir").write_text(ADD_ONE)
    assert run("fmt", add_one.parent) == (0, f"{add_one}: changed\n", "1 of 2 files changed\n")
    assert add_one.read_text() == ADD_ONE


def test_check_and_diff_change_nothing(run: Run, add_one: Path) -> None:
    add_one.write_text(UGLY)
    assert run("fmt", add_one, "--check") == (1, f"{add_one}: would change\n", "1 of 1 files would change\n")
    ran = run("fmt", add_one, "--diff")
    assert ran.code == 0 and f"--- {add_one}\n+++ {add_one} (formatted)\n" in ran.out
    assert run("fmt", add_one, "--diff", "--check").code == 1
    assert add_one.read_text() == UGLY
    add_one.write_text(ADD_ONE.rstrip())
    assert "\\ No newline at end of file\n" in run("fmt", add_one, "--diff").out


def test_from_standard_input_to_standard_output(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(UGLY.encode())))
    assert run("fmt", "-") == (0, ADD_ONE, "")


def test_files_that_are_not_formatted(run: Run, add_one: Path, tmp_path: Path) -> None:
    bad = tmp_path / "a.mlir"
    bad.write_text("  entry * @k")
    add_one.write_text(UGLY)
    ran = run("fmt", bad, add_one)
    assert ran.code == 3 and "a.mlir:1:9: error: unexpected character '*'" in ran.err
    assert ran.err.endswith("1 of 2 files changed, 1 not read\n")
    assert bad.read_text() == "  entry * @k" and add_one.read_text() == ADD_ONE  # the others are
    bad.write_bytes(b"\xff")
    assert run("fmt", bad).code == 2
    (tmp_path / "empty").mkdir()
    assert "has no .mlir file" in run("fmt", tmp_path / "empty").err
    assert run("fmt", tmp_path / "none").code == 2
