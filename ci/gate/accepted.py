"""Regressions that someone has accepted, with the reason: `ci/gate/accepted.toml`, written by `accept` alone.

A row allows one bundle, by its hash, to be slower in one cell on one kind of GPU. So it also holds after a merge that
leaves the kernels as they are, and it says nothing of any later kernel: that is compared with the slower one.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError
from toolchain.files import write_whole
from toolchain.knobs import ROOT
from tune.toml import value

from .verdict import CaseVerdict

TABLE = ROOT / "ci/gate/accepted.toml"
HEAD = """\
# Regressions that were accepted, oldest first; see docs/gate.md. Written by `python -m ci.gate accept`. `change`: our
# time over that of `base_commit`, less one. A row holds for this bundle alone, and up to `at_most`.
"""
SHORTEST = 15  # characters of a reason


@dataclass(frozen=True)
class Accepted:
    gpu: str
    case: str
    source: str
    bundle: str
    commit: str
    base_commit: str
    change: float
    at_most: float
    reason: str
    date: str

    def allows(self, cell: CaseVerdict, gpu: str, bundle: str) -> bool:
        """Whether it covers a regression: the same cell, GPU and bundle, and no more than was accepted."""
        same = (self.gpu, self.case, self.source, self.bundle) == (gpu, cell.case, cell.source, bundle)
        return same and cell.change is not None and cell.change.low <= self.at_most


def load(path: Path = TABLE) -> list[Accepted]:
    """Raises UsageError if the file is damaged. None is as good as an empty one."""
    if not path.exists():
        return []
    try:
        rows: list[dict[str, Any]] = tomllib.loads(path.read_text()).get("accepted", [])
        return [Accepted(**row) for row in rows]
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{path}: {type(error).__name__}: {error}", hint="restore it from git") from error


def mark(cells: Sequence[CaseVerdict], rows: Sequence[Accepted], gpu: str, bundle: str) -> list[CaseVerdict]:
    """The cells, with the reason on each regression that a row allows."""

    def reason(cell: CaseVerdict) -> str:
        found = [row.reason for row in rows if row.allows(cell, gpu, bundle)]
        return found[-1] if found and cell.verdict == "regression" else ""

    return [replace(cell, accepted=reason(cell)) for cell in cells]


def accept(document: dict[str, Any], pattern: str, reason: str, date: str, path: Path = TABLE) -> list[Accepted]:
    """Appends the regressions of a gate's verdicts whose `CASE SOURCE` has a match. Returns them. Raises UsageError if
    there is none, or the reason says nothing."""
    if len(reason.strip()) < SHORTEST:
        raise UsageError(
            f"{reason!r} is no reason", hint="say why the slow-down is worth it, for whoever reads the file next year"
        )
    cells = [
        cell
        for cell in document["cells"]
        if cell["verdict"] == "regression" and re.search(pattern, f"{cell['case']} {cell['source']}")
    ]
    if not cells:
        raise UsageError(f"no regression's name has a match of {pattern!r}", hint="only regressions are accepted")
    made = [
        Accepted(
            document["gpu"], cell["case"], cell["source"], document["bundle"], document["commit"],
            document["base_commit"], round(cell["change"], 4), math.ceil(1e4 * cell["high"]) / 1e4,
            reason.strip(), date,
        )
        for cell in cells
    ]  # fmt: skip
    rows = [*load(path), *made]
    blocks = ["\n".join(["[[accepted]]", *(f"{k} = {value(v)}" for k, v in asdict(row).items())]) for row in rows]
    write_whole(path, "\n\n".join([HEAD.rstrip(), *blocks]) + "\n")
    return made
