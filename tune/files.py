"""Files of rows: what `variants.json` and `measured.json` look like."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def document(version: int, head: Mapping[str, Any], rows: Sequence[str]) -> str:
    """JSON of a format's version, a head and rows that are JSON already: a line for each."""
    opening = json.dumps({"format": version, **head})[:-1]
    return f'{opening}, "rows": [\n' + ",\n".join(rows) + "\n]}\n"
