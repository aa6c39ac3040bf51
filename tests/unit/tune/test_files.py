from __future__ import annotations

import json

from tune.files import document


def test_a_document_is_json_with_a_line_for_each_row() -> None:
    text = document(3, {"target": "sm_90"}, ['{"a": 1}', '{"b": [2]}'])
    assert json.loads(text) == {"format": 3, "target": "sm_90", "rows": [{"a": 1}, {"b": [2]}]}
    assert text.splitlines()[1:3] == ['{"a": 1},', '{"b": [2]}']
    assert json.loads(document(3, {}, [])) == {"format": 3, "rows": []}
