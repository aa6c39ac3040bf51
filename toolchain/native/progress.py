"""What a build prints, as a progress bar, and all of it in a log file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar


class Progress:
    """A bar with the build's stage and how many of ninja's steps are done. Plain lines where there is no terminal."""

    STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)")

    def __init__(self, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log.open("w", encoding="utf-8")  # whatever the locale: compilers quote with what it may lack
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
        self._log.close()

    def line(self, line: str) -> None:
        """Take a line of the build's output."""
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
