"""New results of the support table against the committed one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ci.support import __main__
from ci.support.check import difference
from ci.support.table import DATA, CompileRow, Settings, Table
from toolchain.contract.targets import targets
from toolchain.errors import UsageError

ROW = CompileRow("13.5.37", "13.4", "py", 4, 4, 4, "", tuple(targets()))
KEPT = Table("k", {"tileiras 13.5.37": "2026-01-02"}, {"13.5.37": {"ptxas": "f" * 64}}, [ROW])


def test_dates_and_other_kernels_are_no_difference() -> None:
    later = replace(KEPT, kernels="other", dates={"tileiras 13.5.37": "2026-02-02"})
    assert difference(KEPT, [later], Settings.load()) == ""


def test_a_row_and_a_tool_that_differ_are_shown() -> None:
    fewer = replace(KEPT, compiled=[replace(ROW, compiled=3, why="error: no")])
    found = difference(KEPT, [fewer], Settings.load())
    assert "-| py | 13.4 | 4/4 | 4/4 |" in found and "+| py | 13.4 | 4/4 | 3/4 (1) |" in found
    assert "+1. `error: no`" in found
    other = replace(KEPT, tools={"13.5.37": {"ptxas": "e" * 64}})
    assert "+2026-01-02; sha256 ptxas `eeeeeeeeeeeeeeee`" in difference(KEPT, [other], Settings.load())


def test_a_version_without_results_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"no results of tileiras 13\.5\.37"):
        difference(KEPT, [Table("k")], Settings.load())


def test_the_command_writes_the_difference_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = DATA.read_bytes()
    kept = Table.load()
    kept.write(tmp_path / "same.json")
    summary = tmp_path / "summary.md"
    assert __main__.main(["page", "--check", str(tmp_path / "same.json"), "--summary", str(summary)]) == 0
    assert summary.read_text().endswith("As measured.\n")
    changed = [replace(row, compiled=0, why="error: no") for row in kept.compiled]
    replace(kept, compiled=changed).write(tmp_path / "other.json")
    assert __main__.main(["page", "--check", str(tmp_path / "other.json"), "--summary", str(summary)]) == 1
    assert "```diff\n--- docs/support.md" in summary.read_text() and "next: " in capsys.readouterr().out
    assert DATA.read_bytes() == before
