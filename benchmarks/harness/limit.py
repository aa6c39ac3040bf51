"""A time limit for a call in this process, because compiling a peer can take minutes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

AGAIN_S = 5.0  # library code may swallow the exception, so it is raised again and again


class TimedOut(BaseException):
    """The time limit was reached. It does not derive from Exception, which libraries catch to try something else."""


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raise TimedOut in the block after `seconds`, as soon as Python code runs again. Zero means no limit. Outside the
    main thread there is no limit either, because signals are not delivered there."""
    if seconds <= 0 or threading.current_thread() is not threading.main_thread():
        yield
        return

    running = True

    def over(_signal: int, _frame: object) -> None:
        if running:
            raise TimedOut(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
