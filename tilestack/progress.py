"""How far a compile is, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolchain.pipeline import Progress


@contextmanager
def progress_bar() -> Generator[Progress]:
    """A progress bar on a terminal, nothing elsewhere."""
    from toolchain.pipeline import silent

    if not sys.stderr.isatty():
        yield silent
        return
    from rich import progress as rich_progress
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    what = TextColumn("{task.fields[what]}")
    columns = (TextColumn("compiling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), what)
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compile", total=None, what="")

        def show(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, what=what)

        yield show
