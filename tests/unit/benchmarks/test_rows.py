"""The text of a file of results: what it says is read back, and each row has its own line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.rows import by_rows

ROWS: list[dict[str, Any]] = [{"us": 1.5, "rounds": [1e-05, 2.25]}, {"us": None, "side": 'a "b"\n', "in": {"x": []}}]


@pytest.mark.parametrize(
    "document", [{"rows": ROWS}, {"rows": []}, {"gpu": "one", "versions": {"a": "1", "b": "2"}, "r": ROWS}]
)
def test_what_is_written_is_read(document: dict[str, Any]) -> None:
    assert json.loads(by_rows(document)) == document


def test_a_row_has_a_line_and_all_else_a_line_for_each_value() -> None:
    text = by_rows({"gpu": "one", "versions": {"a": "1", "b": "2"}, "rows": ROWS})
    assert len(text.splitlines()) == 2 + 1 + 4 + 2 + len(ROWS)
    assert f"  {json.dumps(ROWS[0])},\n" in text


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        by_rows({"rows": [{"us": object()}]})
