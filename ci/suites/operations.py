"""In how many chunks of a suite each operation stands, and what became of them: a file of JSON for the reference."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from toolchain.cute.chunks import TestFile

FOLDER = Path(__file__).parent
PROGRAMS = "/Integration/"  # folders whose files are programs that are run


def path_of(suite: str) -> Path:
    """The file of a suite."""
    return FOLDER / f"{suite}_operations.json"


def counts(rows: Sequence[Mapping[str, Any]], tree: Path, dialect: str) -> dict[str, dict[str, int]]:
    """For each operation of a dialect the chunks with it that `passed` and that `failed`; `programs` are those of the
    first that are run, whose values are compared."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        name, _, test = row["test"].partition("::")
        for op in _operations(tree / name, dialect).get(test, ()):
            of = found.setdefault(op, Counter())
            of[row["outcome"]] += 1
            of["programs"] += row["outcome"] == "passed" and PROGRAMS in name
    return {op: {key: count for key, count in of.items() if count} for op, of in sorted(found.items())}


@cache
def _operations(path: Path, dialect: str) -> dict[str, set[str]]:
    """The operations of each chunk of a file, by the name of its test. Types and attributes are no operations."""
    word = re.compile(rf"(?<![!#\w.]){dialect}\.[a-z][\w.]*\w")
    code = {f"line {one.line}": re.sub(r"//.*", "", one.text) for one in TestFile(path.read_text()).chunks}
    return {name: set(word.findall(text)) for name, text in code.items()}


def write(suite: str, rows: Sequence[Mapping[str, Any]], tree: Path, dialect: str) -> None:
    """Writes a suite's file."""
    made = [f"{json.dumps(op)}: {json.dumps(of)}" for op, of in counts(rows, tree, dialect).items()]
    path_of(suite).write_text("{\n" + ",\n".join(made) + "\n}\n")
