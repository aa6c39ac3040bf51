"""The end of a command: turns errors into messages and exit codes."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import FrameType

from .errors import TilestackError, ToolchainError
from .pinned.manifest import CHECKOUT

CUT_OFF = 128 + 13  # the exit code that a shell reports for a program ended by SIGPIPE
# Our packages: those beside this one, and tilestack, which has them inside when it was installed from a wheel.
OURS = frozenset({"tilestack", *(path.parent.name for path in Path(__file__).parents[1].glob("*/__init__.py"))})


def settle_streams() -> None:
    """Prepares standard output and error. A closed stream discards what is written to it. Characters that the
    terminal's encoding lacks, and file names that are not text, are shown escaped, as on Python's standard error."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - to the end of the process
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


class Terminated(KeyboardInterrupt):
    """A signal that ends a process, as an exception: what is begun is cleaned up as after Ctrl-C."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__(signal.strsignal(number))
        self.exit_code = 128 + number


@contextmanager
def termination_raises() -> Generator[None]:
    """SIGTERM and SIGHUP, with which a cancelled job and a closed terminal end, are exceptions in here, unless somebody
    catches or ignores them already. Signals can be caught in the main thread alone."""

    def end(number: int, _: FrameType | None) -> None:
        raise Terminated(number)

    caught: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():
        caught = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    for each in caught:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in caught:
            signal.signal(each, signal.SIG_DFL)


def run(work: Callable[[], int | None], *, set_up: str, debug: bool = False) -> int:
    """Runs `work` and returns the command's exit code: that of `work`, that of an error, which is printed, or 141 if
    nobody reads the output any more. `set_up`: the advice to print if a package is missing. With `debug` an error is
    raised with its traceback instead."""
    settle_streams()
    code = CUT_OFF
    try:
        with termination_raises():
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
            f"error: this command needs {error.name}, which {sys.executable} lacks\n"
            f"  next: {set_up if CHECKOUT else install(error.name or '')}",
            file=sys.stderr,
        )
        return ToolchainError.exit_code
    except Terminated as error:
        print(str(error).lower(), file=sys.stderr)
        return error.exit_code
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


def install(module: str) -> str:
    """How to install a module that an installed wheel lacks: it is one of the distribution's dependencies, or of an
    extra's."""
    whole = re.sub(r"[._]", "-", module)
    requirements = metadata.requires("tilestack") or []
    extras = [found[1] if (found := re.search(r"extra == ['\"](\w+)['\"]", each)) else "" for each in requirements]
    for name in (whole, whole.partition("-")[0]):  # cuda.tile is cuda-tile, xdsl.ir is of xdsl
        having = [
            extra for extra, each in zip(extras, requirements, strict=True) if re.match(rf"{re.escape(name)}\b", each)
        ]
        if having:
            smallest = "" if "" in having else min(having, key=extras.count)
            return f"pip install 'tilestack[{smallest}]'" if smallest else "pip install tilestack"
    return f"pip install {module}"


def forget_output() -> None:
    """Discards the output that is not written yet, so that the flush at exit does not meet a closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
