"""The report of a run: a table for the terminal, report.json for programs, report.md for people."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from toolchain.files import write_whole

from .building import Commit
from .comparing import File
from .variation import Varied

FORMAT = 1
SHOWN = 20  # differing files of each artefact that report.md shows; report.json has all


@dataclass(frozen=True)
class Result:
    """An artefact that was built twice. `reason`: why it was not built, or failed. `seconds`: of the two commands."""

    name: str
    status: Literal["identical", "differs", "failed", "not run"]
    reason: str = ""
    command: tuple[str, ...] = ()
    seconds: tuple[float, ...] = ()
    files: tuple[File, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def identical(self) -> int:
        return sum(file.identical for file in self.files)


@dataclass(frozen=True)
class Report:
    """The results of a run. `notes`: remarks for the reader."""

    commit: Commit
    selection: Sequence[str]
    varied: Sequence[Varied]
    results: Sequence[Result]
    notes: Sequence[str]

    @property
    def good(self) -> bool:
        """True if nothing that was built differs or failed."""
        return all(result.status in ("identical", "not run") for result in self.results)

    def to_json(self) -> dict[str, object]:
        rows = [
            {**asdict(result), "files": [{**asdict(f), "identical": f.identical} for f in result.files]}
            for result in self.results
        ]
        return {
            "format": FORMAT, "good": self.good, "commit": asdict(self.commit), "selection": list(self.selection),
            "machine": {"platform": platform.platform(), "python": platform.python_version()},
            "varied": [asdict(row) for row in self.varied if not row.reason],
            "not_varied": [{"what": row.what, "reason": row.reason} for row in self.varied if row.reason],
            "artefacts": rows, "notes": list(self.notes),
        }  # fmt: skip


def write(report: Report, folder: Path) -> None:
    """Write report.json and report.md into the folder, each completely or not at all. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "report.json", json.dumps(report.to_json(), indent=1) + "\n")
    write_whole(folder / "report.md", markdown(report))


def show(report: Report, console: Console) -> None:
    """Print the table."""
    table = Table("artefact", "result", "files", "identical", "seconds")
    for result in report.results:
        table.add_row(result.name, result.status, *_numbers(result))
    console.print(table)
    for result in report.results:
        if result.reason:
            console.print(f"{result.name}: {result.status}: {result.reason}", markup=False)
        for file in [file for file in result.files if not file.identical][:SHOWN]:
            console.print(f"{result.name}: {file.name} differs\n{_indented(file.cause)}", markup=False)
    for row in report.varied:
        if row.reason:
            console.print(f"not varied: {row.what}: {row.reason}", markup=False)
    for note in report.notes:
        console.print(f"note: {note}", markup=False)


def _numbers(result: Result) -> tuple[str, str, str]:
    if not result.files:
        return "", "", " ".join(f"{s:.1f}" for s in result.seconds)
    return str(len(result.files)), str(result.identical), " ".join(f"{s:.1f}" for s in result.seconds)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def markdown(report: Report) -> str:
    """The text of report.md."""
    verdict = "Nothing that was built differs." if report.good else "Something differs, or could not be built."
    lines = [
        "# Built twice", "",
        f"Commit `{report.commit.sha}`. {verdict}", "",
        "| artefact | result | files | identical | seconds |", "|---|---|---:|---:|---:|",
        *(f"| {r.name} | {r.status} | {' | '.join(_numbers(r))} |" for r in report.results),
        "", "## Varied", "",
        "| what | first build | second build |", "|---|---|---|",
        *(f"| {row.what} | `{row.first}` | `{row.second}` |" for row in report.varied if not row.reason),
    ]  # fmt: skip
    if any(row.reason for row in report.varied) or any(result.kept for result in report.results):
        lines += ["", "## Not varied", ""]
        lines += [f"- {row.what}: {row.reason}" for row in report.varied if row.reason]
        lines += [f"- {kept}, for {result.name}" for result in report.results for kept in result.kept]
    if report.notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in report.notes)]
    for result in report.results:
        if result.reason:
            lines += ["", f"## {result.name}: {result.status}", "", "```", result.reason, "```"]
        other = [file for file in result.files if not file.identical]
        if other:
            lines += ["", f"## {result.name}: {len(other)} files differ"]
        for file in other[:SHOWN]:
            lines += ["", f"`{file.name}`: {file.sha256[0]}, {file.sha256[1]}", "", "```", file.cause, "```"]
        if len(other) > SHOWN:
            lines += ["", f"{len(other) - SHOWN} more are in report.json."]
    return "\n".join(lines) + "\n"
