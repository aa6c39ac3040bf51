"""`ci/bench.toml`: what is asked for. The plan reads it too, so that nothing here imports the benchmarks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError
from toolchain.knobs import ROOT
from toolchain.tables import Check, check_keys, is_integer, place, read_table, some_texts

from ..matrix import Matrix

TABLE = ROOT / "ci/bench.toml"
FEWEST, MOST = 5, 500  # samples


def _samples(value: Any) -> str | None:
    return None if is_integer(value) and FEWEST <= value <= MOST else f"an integer from {FEWEST} to {MOST}"


KEYS: Mapping[str, Check] = {"cases": some_texts, "gpus": some_texts, "samples": _samples}


@dataclass(frozen=True)
class Request:
    """What is to be measured. `cases`: patterns of their names. `gpus`: names of runners. `samples`: of each side."""

    path: Path
    cases: Sequence[str]
    gpus: Sequence[str]
    samples: int

    def at(self, key: str, value: str) -> str:
        """`file:line: key`, for a message."""
        return at(self.path, key, value)


def load(matrix: Matrix, path: Path | None = None) -> Request | None:
    """The request in the file, None if it is empty. Raises UsageError with file and key for what is wrong, except for a
    pattern without a case, which `python -m ci.bench` finds."""
    path = path or TABLE
    table = read_table(path)
    if not table:
        return None
    check_keys(table, KEYS, str(path))
    known = [runner.name for runner in matrix.runners if runner.gpu]
    for name in table["gpus"]:
        if name not in known:
            raise UsageError(f"{at(path, 'gpus', name)}: no runner with a GPU is called {name!r}",
                             hint=f"ci/matrix.toml has {', '.join(known)}")  # fmt: skip
    for pattern in table["cases"]:
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{at(path, 'cases', pattern)}: {pattern!r} is no regular expression: {error}") from error
    return Request(path, table["cases"], list(dict.fromkeys(table["gpus"])), table["samples"])


def at(path: Path, key: str, value: str) -> str:
    """`file:line: key`, of the line with the value."""
    return f"{place(path, key, value)}: {key}"
