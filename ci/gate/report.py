"""The gate's outcome: `verdicts.json` for programs, Markdown for a step summary or a comment, and an exit code."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from toolchain.errors import ConformanceError

from .thresholds import Thresholds
from .verdict import CaseVerdict

FORMAT = 1
REGRESSION, INCONCLUSIVE = 1, 11
ORDER = ("regression", "inconclusive", "improvement", "neutral")


@dataclass(frozen=True)
class Report:
    """`environment`: of the first measurement, as benchmarks write it. `base`: of that, the other bundle's part.
    `command`: what makes this again. `retries`: why a measurement was tried again, for each time. `notes`: what else
    there is to say. `accepted_in`: the file of accepted regressions, if it is not ours."""

    cells: Sequence[CaseVerdict]
    environment: Mapping[str, Any]
    base: Mapping[str, Any]
    rules: Thresholds
    command: Sequence[str]
    retries: Sequence[str] = ()
    notes: Sequence[str] = ()
    accepted_in: str = ""

    @property
    def regressions(self) -> list[CaseVerdict]:
        return [cell for cell in self.cells if cell.verdict == "regression" and not cell.accepted]

    @property
    def same(self) -> int:
        """How many cells were not measured because their machine code is the same."""
        return sum(cell.same for cell in self.cells)

    @property
    def undecided(self) -> list[CaseVerdict]:
        """What fails the run for want of a verdict: a required cell, and any that could not be compared."""
        found = [cell for cell in self.cells if cell.verdict == "inconclusive"]
        return [cell for cell in found if cell.required or not cell.compared]

    @property
    def exit_code(self) -> int:
        """9 if an output was wrong, else 1 for a regression, else 11 for want of a verdict, else 0."""
        if any(cell.wrong for cell in self.cells):
            return ConformanceError.exit_code
        if self.regressions:
            return REGRESSION
        return INCONCLUSIVE if self.undecided else 0

    def to_json(self) -> dict[str, Any]:
        env = self.environment
        return {
            "format": FORMAT, "exit_code": self.exit_code, "gpu": env.get("gpu", ""), "driver": env.get("driver", ""),
            "date": env.get("date", ""), "commit": env.get("bundle_commit", env.get("commit", "")),
            "bundle": env.get("bundle", ""), "base_commit": self.base.get("commit", ""),
            "base_bundle": self.base.get("bundle", ""), "command": shlex.join(self.command),
            "thresholds": self.rules.to_json(), "counts": self._counts(), "same_machine_code": self.same,
            "retries": list(self.retries), "notes": list(self.notes),
            "cells": [_cell(cell) for cell in self.cells],
        }  # fmt: skip

    def _counts(self) -> dict[str, int]:
        counted = Counter(cell.verdict for cell in self.cells)
        return {verdict: counted[verdict] for verdict in ORDER}

    def markdown(self) -> str:
        """A headline, then a table of all cells that are not neutral, then how to go on."""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self._counts().items())
        about = self.to_json()
        versus = f"{_short(about['commit'])} beside {_short(about['base_commit'])}"
        machine = f"{about['gpu']}, driver {about['driver']}" if about["gpu"] else "nothing was measured"
        lines = [f"## Speed: {self._headline()}", "", f"{counts} · {machine} · {versus}"]
        if self.same:
            told = f"{self.same} of {len(self.cells)} cells have the same machine code in both bundles"
            lines += ["", f"{told}: they are neutral, and were not measured."]
        if self.retries:
            lines += ["", f"Tried again after errors of the machine: {len(self.retries)} times.", ""]
            lines += [f"- {' '.join(why.split())}" for why in self.retries]
        lines += [line for note in self.notes for line in ("", note)]
        shown = sorted((c for c in self.cells if c.verdict != "neutral"), key=lambda c: ORDER.index(c.verdict))
        if shown:
            lines += ["", "| cell | verdict | our time | why |", "|---|---|---|---|"]
            lines += [_line(cell) for cell in shown]
        largest = max((c for c in self.cells if c.verdict == "neutral" and c.change), key=_size, default=None)
        if largest:
            lines += ["", f"Largest change among the neutral: {largest.case} {largest.source}, {largest.change}."]
        if self.regressions:
            lines += ["", "To accept a regression, run this with the artefact, and commit what it writes:", "", "```sh"]
            where = f" --accepted {shlex.quote(self.accepted_in)}" if self.accepted_in else ""
            lines += [f"python -m ci.gate accept verdicts.json --cell 'CASE SOURCE' --reason 'WHY'{where}", "```"]
        return "\n".join([*lines, "", "The same again, on a machine with such a GPU:", "", "```sh",
                          shlex.join(self.command), "```", ""])  # fmt: skip

    def _headline(self) -> str:
        match self.exit_code:
            case 0:
                return "no regression"
            case code if code == REGRESSION:
                return f"{len(self.regressions)} of {len(self.cells)} cells are slower"
            case code if code == INCONCLUSIVE:
                return f"no verdict on {len(self.undecided)} cells that need one"
            case _:
                return "a wrong output, which no speed makes good"


def _size(cell: CaseVerdict) -> float:
    return abs(cell.change.value) if cell.change else 0.0


def _short(commit: str) -> str:
    return f"`{commit[:12]}`" if commit else "an unknown commit"


def _line(cell: CaseVerdict) -> str:
    verdict = f"{cell.verdict}, accepted" if cell.accepted else cell.verdict
    why = cell.accepted or cell.reason
    words = (f"{cell.case} {cell.source}", verdict, str(cell.change or ""), " ".join(why.split()).replace("|", "\\|"))
    return f"| {' | '.join(words)} |"


def _cell(cell: CaseVerdict) -> dict[str, Any]:
    change = cell.change
    numbers = {"change": change.value, "low": change.low, "high": change.high} if change else {}
    return {
        "case": cell.case, "source": cell.source, "verdict": cell.verdict, "reason": cell.reason, **numbers,
        "compared": cell.compared, "required": cell.required, "wrong": cell.wrong, "accepted": cell.accepted,
        "same_machine_code": cell.same,
        "measurements": [asdict(finding) for finding in cell.findings],
    }  # fmt: skip
