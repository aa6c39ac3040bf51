"""In how many chunks of a suite each operation stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci.suites import operations

TEST = """\
// RUN: cute-opt %s -split-input-file
%a = cute.size(%x) : !cute.layout<"4:1"> -> !cute.int_tuple<"4">  // not cute.rank
// -----
%a = cute.size(%x) : () -> ()
%b = cute.size(%a) : () -> ()
%c = cute.tiled.copy.retile(%a) {to = #cute.shape<"1">} : () -> ()
"""


def row(test: str, outcome: str) -> dict[str, str]:
    return {"test": test, "outcome": outcome}


def test_an_operation_is_counted_once_for_each_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("Dialect", "Integration"):
        (tmp_path / "test" / folder).mkdir(parents=True)
        (tmp_path / "test" / folder / "a.mlir").write_text(TEST)
    rows = [
        row("test/Dialect/a.mlir::line 1", "failed"),
        row("test/Dialect/a.mlir::line 4", "passed"),
        row("test/Integration/a.mlir::line 4", "passed"),
    ]
    monkeypatch.setattr(operations, "FOLDER", tmp_path)
    operations.write("cute", rows, tmp_path, "cute")
    assert json.loads(operations.path_of("cute").read_text()) == {
        "cute.size": {"failed": 1, "passed": 2, "programs": 1},
        "cute.tiled.copy.retile": {"passed": 2, "programs": 1},
    }


def test_the_file_is_of_the_run_that_the_page_shows() -> None:
    """The chunks that fail by the page are those of the operations that are counted as failed."""
    page = (operations.FOLDER.parents[1] / "docs/suites.md").read_text()
    stored = json.loads(operations.path_of("cute").read_text())
    failed = {name.removeprefix("cute."): of["failed"] for name, of in stored.items() if "failed" in of}
    section = page.partition("## CuTe IR's own tests")[2].partition("\n## ")[0]
    assert failed == {name: section.count(f"/{name}.mlir: `line") for name in failed} and failed
