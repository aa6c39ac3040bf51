"""The end of a command: turns errors into messages and exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from .errors import TilestackError, ToolchainError

CUT_OFF = 128 + 13  # the exit code that a shell reports for a program ended by SIGPIPE
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
    """Prepares standard output and error. A closed stream discards what is written to it. Characters that the
    terminal's encoding lacks, and file names that are not text, are shown escaped, as on Python's standard error."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - to the end of the process
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def run(work: Callable[[], int | None], *, set_up: str, debug: bool = False) -> int:
    """Runs `work` and returns the command's exit code: that of `work`, that of an error, which is printed, or 141 if
    nobody reads the output any more. `set_up`: the advice to print if a package is missing. With `debug` an error is
    raised with its traceback instead."""
    settle_streams()
    code = CUT_OFF
    try:
        code = int(work() or 0)
        sys.stdout.flush()  # flush here, where a closed pipe can be told from other errors
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
    except BrokenPipeError:  # the reader of our output has ended, and work may be left undone
        forget_output()
        return code
    except OSError as error:  # a full disk, a folder that may not be written
        if debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1


def forget_output() -> None:
    """Discards the output that is not written yet, so that the flush at exit does not meet a closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
