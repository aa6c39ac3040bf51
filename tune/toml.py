"""Writes the subset of TOML that tuned rows need. The same rows always give the same text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def entries(rows: Sequence[Mapping[str, Any]], table: str, *below: str) -> str:
    """`[[table]]` for each row, those of its values that are named in `below` as tables `[table.name]` after the
    others."""
    return "\n".join(_entry(row, table, below) for row in rows)


def _entry(row: Mapping[str, Any], table: str, below: Sequence[str]) -> str:
    lines = [f"[[{table}]]", *(_line(key, item) for key, item in row.items() if key not in below)]
    for name in (name for name in below if name in row):
        lines += ["", f"[{table}.{name}]", *(_line(key, item) for key, item in row[name].items())]
    return "\n".join(lines) + "\n"


def _line(key: str, item: object) -> str:
    return f"{_key(key)} = {value(item)}"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def value(item: object) -> str:
    """A text, number, list or table of those, on one line."""
    match item:
        case str():
            return json.dumps(item, ensure_ascii=False)  # TOML's basic strings take JSON's escapes
        case int() | float():
            return repr(item)
        case Mapping():
            rows = cast("Mapping[str, object]", item)
            inner = ", ".join(_line(key, inside) for key, inside in rows.items())
            return f"{{ {inner} }}" if inner else "{}"
        case Sequence():
            return f"[{', '.join(map(value, cast('Sequence[object]', item)))}]"
        case _:
            raise TypeError(f"no TOML for {item!r}")
