"""Shows the output of a build as a progress bar, and writes all of it to a log file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TextIO

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar


class Progress:
    """A bar with the build's stage and how many of ninja's steps are done. Plain lines where there is no terminal.

    The log is that of an earlier build until the first line: another build may be writing it that this one waits for.
    """

    STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)")

    def __init__(self, log: Path) -> None:
        self._path = log
        self._log: TextIO | None = None
        self._bar = Bar(
            TextColumn("{task.description:44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), transient=True
        )
        self._task = self._bar.add_task("starting", total=None)
        self._plain = not sys.stdout.isatty()

    def __enter__(self) -> Progress:
        if not self._plain:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._plain:
            self._bar.stop()
        if self._log:
            self._log.close()

    @property
    def began(self) -> bool:
        """Whether the log is this build's."""
        return self._log is not None

    def line(self, line: str) -> None:
        """Take a line of the build's output."""
        if self._log is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._log = self._path.open("w", encoding="utf-8")  # whatever the locale: compilers quote what it may lack
        self._log.write(line + "\n")
        if line.startswith("== "):
            # A task of its own: once a task has a total, rich leaves it one.
            self._bar.remove_task(self._task)
            self._task = self._bar.add_task(line[3:], total=None)
            if self._plain:
                print(line[3:], flush=True)
        elif step := self.STEP.match(line):
            done, total = int(step[1]), int(step[2])
            self._bar.update(self._task, completed=done, total=total)
            if self._plain and done % 100 == 0:
                print(f"  {done} of {total} steps", flush=True)
