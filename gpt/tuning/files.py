"""Files of rows, written so that whoever reads one sees the old content or the new, never a part."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_whole(path: Path, content: str) -> None:
    """Replaces a file at once; its folder is made if need be. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(content)
        beside.replace(path)
    except BaseException:  # a full disk, an interrupt
        beside.unlink(missing_ok=True)
        raise


def document(version: int, head: Mapping[str, Any], rows: Sequence[str]) -> str:
    """JSON of a format's version, a head and rows that are JSON already: a line for each."""
    opening = json.dumps({"format": version, **head})[:-1]
    return f'{opening}, "rows": [\n' + ",\n".join(rows) + "\n]}\n"
