"""The support table: kept, merged and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.support.page import page
from ci.support.table import DATA, HERE, CompileRow, RunRow, Settings, Table, merge
from toolchain.contract.targets import targets
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

NAMES = tuple(targets())
OLD = CompileRow("13.4.92", "13.4", "py", 4, 4, 4, "", NAMES)
NEW = CompileRow("13.5.37", "13.4", "py", 4, 4, 3, "error: no", NAMES)
RAN = RunRow("A GPU", "580", "sm_90", "13.5.37", "13.4", "py", 4, 4, 4, 3, 9, "1.0 is too much")


def of(row: CompileRow, kernels: str = "k") -> Table:
    return Table(kernels, {f"tileiras {row.tileiras}": "2026-01-02"}, {row.tileiras: {"ptxas": "f" * 64}}, [row])


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    whole = merge([of(OLD), of(NEW), Table("k", {"A GPU": "2026-01-03"}, {}, [], [RAN])])
    whole.write(tmp_path / "t.json")
    assert Table.load(tmp_path / "t.json") == whole
    assert whole.compiled == [OLD, NEW] and whole.ran == [RAN]


def test_new_results_replace_those_of_the_same_tool_and_other_kernels_replace_all() -> None:
    again = CompileRow("13.5.37", "13.4", "py", 4, 4, 4, "", NAMES)
    assert merge([of(OLD), of(NEW), of(again)]).compiled == [OLD, again]
    assert merge([of(OLD), of(NEW, "other")]).compiled == [NEW]


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"format": 1}')
    with pytest.raises(UsageError, match="no support table"):
        Table.load(tmp_path / "t.json")


def test_the_page_shows_counts_errors_and_what_was_not_run() -> None:
    shown = page(of(NEW), Settings.load())
    assert "| py | 13.4 | 4/4 |" + " 3/4 (1) |" * len(NAMES) in shown
    assert "1. `error: no`" in shown and "Not run." in shown
    assert (
        "- Rows and policies of `entries/sm_80.toml`, `entries/sm_100.toml`, `entries/sm_120.toml` are **predicted"
        in shown
    )
    ran = page(Table("k", {"tileiras 13.5.37": "d", "A GPU": "d"}, {}, [NEW], [RAN]), Settings.load())
    assert "| 13.5.37 | 13.4 | py | 4/4 | 4/4 | 3/4 (1) | 9 |" in ran


def test_the_committed_page_is_made_from_the_committed_table() -> None:
    assert (ROOT / "docs/support.md").read_text() == page(Table.load(DATA), Settings.load())


def test_each_version_of_the_matrix_has_locked_wheels() -> None:
    from ci.matrix import Matrix

    for version in Matrix.load().tools["tileiras"]:
        assert f"nvidia-cuda-tileiras=={version} " in (HERE / f"tools/{version}.lock").read_text()
