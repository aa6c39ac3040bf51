"""The text of a file of results: JSON in which each row has a line, so that a difference of two files shows rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def by_rows(document: Mapping[str, Any]) -> str:
    """A list of objects has a line for each; all else is indented. Raises TypeError for what is no JSON."""
    parts = [f" {json.dumps(key)}: {_value(value)}" for key, value in document.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _value(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return "[\n" + ",\n".join(f"  {json.dumps(each)}" for each in value) + "\n ]"
    return json.dumps(value, indent=1).replace("\n", "\n ")
