"""The file of a study's numbers: JSON with a line for each row, so that a difference of two files shows rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolchain.files import write_whole


def write_rows(path: Path, about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes what all rows share (the GPU, versions), then `rows`."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in about.items()]
    listed = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    write_whole(path, "{\n" + "".join(lines) + f' "rows": [\n{listed}\n ]\n}}\n', parents=True)
