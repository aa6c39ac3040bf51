"""The page of the documentation: what became of each suite's tests, a section for each suite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .checkout import Suite
from .environment import pinned
from .reasons import VARY, class_of

HEAD = """# Suites of others

Which test suites that somebody else wrote run on our tools, and what fails there? `nox -s suites -- NAME` writes a
section of this page; [run](run.md) explains how cuTile programs run. A section is of one run of the whole suite, with
the files that were run again since: `nox -s suites -- NAME --files FILE`.
"""
_SHOWN = 160  # characters of a reason


@dataclass
class File:
    """The tests of one file."""

    counts: Counter[str] = field(default_factory=Counter[str])
    failures: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def by_file(rows: Sequence[Mapping[str, Any]]) -> dict[str, File]:
    """What was recorded (recording.py), by file."""
    files: dict[str, File] = {}
    for row in rows:
        name, _, test = row["test"].partition("::")
        file = files.setdefault(name, File())
        file.counts[row["outcome"]] += 1
        if row["outcome"] == "failed":
            file.failures.append((test, row["reason"]))
    return dict(sorted(files.items()))


def section(suite: Suite, rows: Sequence[Mapping[str, Any]], tree: Path) -> str:
    """A suite's part of the page. `tree`: its folder, which is left out of reasons."""
    files = by_file(rows)
    total = sum((file.counts for file in files.values()), Counter[str]())
    classes = Counter(
        class_of(f"{name}::{test}", reason) for name, file in files.items() for test, reason in file.failures
    )
    lines = [
        f"## {suite.title}", "",
        _summary(suite, total, sum(row["seconds"] for row in rows)), "",
        "| why tests fail | how many |", "|---|---|",
        *(f"| {name} | {count} |" for name, count in classes.most_common()), "",
        f"| {suite.by} | passed | skipped | failed |", "|---|---|---|---|",
        *(f"| {name} | {counts['passed']} | {counts['skipped']} | {counts['failed']} |"
          for name, counts in _rows(files, suite.by).items()), "",
        "| failed | class | reason |", "|---|---|---|",
        *(f"| {name}: {_cell(test)} | {class_of(f'{name}::{test}', reason)} | {_cell(_short(reason, tree))} |"
          for name, f in files.items() for test, reason in f.failures), "",
    ]  # fmt: skip
    return "\n".join(lines)


def _rows(files: Mapping[str, File], by: str) -> dict[str, Counter[str]]:
    """What became of the tests of each file, or of each folder."""
    made: dict[str, Counter[str]] = {}
    for name, file in files.items():
        row = name if by == "file" else name.rpartition("/")[0]
        made[row] = made.get(row, Counter[str]()) + file.counts
    return made


def _summary(suite: Suite, total: Counter[str], seconds: float) -> str:
    name = suite.repository.rsplit("/", 1)[1]
    beside = f", with {pinned(suite.requirements[0])}" if suite.requirements else ""
    return (
        f"[{name}]({suite.repository}) at `{suite.commit[:12]}`{beside}: "
        f"{total['passed']:,} passed, {total['skipped']:,} skipped, {total['failed']:,} failed, "
        f"in {f'{seconds / 60:.0f} minutes' if seconds >= 90 else f'{seconds:.0f} seconds'} of one core."
        f"{suite.about and f' {suite.about}'}"
    )


def _short(reason: str, tree: Path) -> str:
    lines = [line.strip() for line in reason.replace(f"{tree}/", "").splitlines() if line.strip()]
    text = re.sub(r"_Kt\d\w*", "", lines[0] if lines else "the process ended")
    text = re.sub(r"/\S*/", "", text)  # folders of the machine it ran on
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _cell(text: str) -> str:
    return f"`{text.replace('`', ' ').replace('|', '/')}`" if text else ""


def failures(page: Path, title: str) -> set[str]:
    """The tests that fail by a section of the page, `file: test` as it has them."""
    content = page.read_text() if page.is_file() else ""
    part = next((each for each in _sections(content) if each.startswith(f"## {title}\n")), "")
    _, _, table = part.partition("| failed | class | reason |\n")
    return {line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[1:]}


def newly_failed(suite: Suite, rows: Sequence[Mapping[str, Any]], page: Path) -> list[str]:
    """The tests that failed now, though not by the page, without those of classes that vary from run to run."""
    known = failures(page, suite.title)
    failed = [(name, *failure) for name, file in by_file(rows).items() for failure in file.failures]
    return [
        f"{name}: {_cell(test)}: {' '.join(reason.split())[:_SHOWN]}" for name, test, reason in failed
        if f"{name}: {_cell(test)}" not in known and class_of(f"{name}::{test}", reason) not in VARY
    ]  # fmt: skip


def _sections(content: str) -> list[str]:
    return re.split(r"^(?=## )", content, flags=re.MULTILINE)[1:]


def update(page: Path, title: str, text: str) -> None:
    """Writes a section into the page, in the place of the one with the same title."""
    content = page.read_text() if page.is_file() else ""
    kept = {each.splitlines()[0].removeprefix("## "): each.rstrip() for each in _sections(content)}
    kept[title] = text.rstrip()
    page.write_text("\n\n".join([HEAD.rstrip(), *kept.values()]) + "\n")
