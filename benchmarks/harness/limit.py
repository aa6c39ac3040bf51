"""A time limit on a call of this process: compiling a peer can take minutes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

AGAIN_S = 5.0  # library code may swallow what we raise in it: raise it again


class TimedOut(BaseException):
    """The limit is over. No Exception: libraries catch these, to try the next way."""


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raises TimedOut in the block after `seconds`, as soon as Python runs again. Zero is no limit; nor is there one
    outside of the main thread, where signals are not delivered."""
    if seconds <= 0 or threading.current_thread() is not threading.main_thread():
        yield
        return

    running = True

    def over(_signal: int, _frame: object) -> None:
        if running:
            raise TimedOut(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
