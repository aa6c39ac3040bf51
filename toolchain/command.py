"""How a command ends: errors become messages and exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from .errors import TilestackError, ToolchainError

CUT_OFF = 128 + 13  # what a shell says of a program that SIGPIPE ended
OURS = frozenset(
    {"benchmarks", "ci", "conformance", "gpt", "kernels_mlir", "kernels_py", "tilestack", "toolchain", "tune"}
)


class Terminated(KeyboardInterrupt):
    """SIGTERM, where it was asked to be an exception: a cancelled job, a machine that shuts down."""


@contextmanager
def termination_raises() -> Generator[None]:
    """Inside, SIGTERM raises Terminated, as Ctrl-C raises KeyboardInterrupt. To be used in the main thread."""

    def raise_it(*_: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, raise_it)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def settle_streams() -> None:
    """A stream that is closed forgets what is written to it. What the terminal's encoding lacks, and a file name that
    is no text, is shown escaped, as Python does on standard error."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - to the end of the process
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def run(work: Callable[[], int | None], *, set_up: str, debug: bool = False) -> int:
    """The exit code of a command: what `work` returns, or an error's, which is printed, or 141 where `work` was cut off
    because nobody reads its output. `set_up`: what to do where a package is missing. `debug`: an error is raised with
    its traceback instead."""
    settle_streams()
    code = CUT_OFF
    try:
        code = int(work() or 0)
        sys.stdout.flush()  # here, where a reader that is gone can be told from an error
        return code
    except TilestackError as error:
        if debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:  # a GPU machine has few packages
        package = (error.name or "").partition(".")[0]
        if debug or package in OURS:
            raise
        print(
            f"error: this command needs {error.name}, which {sys.executable} lacks\n  next: {set_up}", file=sys.stderr
        )
        return ToolchainError.exit_code
    except Terminated:
        print("terminated", file=sys.stderr)
        return 128 + signal.SIGTERM
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:  # the reader of our output is gone: that is its right, but work may be left undone
        forget_output()
        return code
    except OSError as error:  # a full disk, a folder that may not be written
        if debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1


def forget_output() -> None:
    """Sends what is still to be written nowhere, so that the flush at exit finds no closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
