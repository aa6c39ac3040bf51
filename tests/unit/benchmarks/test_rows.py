"""A study's file: what it says is read back, and each row has its own line."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.rows import write_rows


def test_a_row_is_a_line(tmp_path: Path) -> None:
    path, rows = tmp_path / "new" / "rows.json", [{"us": 1.5, "shape": [8, 16]}, {"us": None, "side": 'a "b"'}]
    write_rows(path, {"gpu": "one", "torch": "2.11"}, rows)
    assert json.loads(path.read_text()) == {"gpu": "one", "torch": "2.11", "rows": rows}
    assert len(path.read_text().splitlines()) == len(rows) + 6


def test_a_file_may_have_no_rows(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.json", {}, [])
    assert json.loads((tmp_path / "rows.json").read_text()) == {"rows": []}
