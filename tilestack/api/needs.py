"""What a call needs beside the base installation, and the wait for a compiler."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

from toolchain.command import OURS, install
from toolchain.errors import ToolchainError
from toolchain.pinned.manifest import CHECKOUT, REPAIR

PATIENCE_S = 1.0  # a compile that takes less shows nothing


@contextmanager
def packages_for(what: str) -> Generator[None]:
    """Turns a missing package into a ToolchainError that says what needs it, and how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OURS:
            raise
        hint = REPAIR if CHECKOUT else install(error.name or "")
        raise ToolchainError(f"{what} needs the package {error.name}, which is not installed", hint=hint) from error


@contextmanager
def shown_if_long(what: str) -> Generator[None]:
    """Shows a bar with the time that has passed on a terminal, once a piece of work takes more than a second."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    bar.add_task(what, total=None)
    timer = threading.Timer(PATIENCE_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may have begun to show the bar
        bar.stop()
