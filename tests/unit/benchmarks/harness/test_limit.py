from __future__ import annotations

import signal
import threading
import time

import pytest

from benchmarks.harness.limit import TimedOut, time_limit


def test_a_call_that_takes_too_long_ends() -> None:
    start = time.perf_counter()
    with pytest.raises(TimedOut, match=r"0\.05 s"), time_limit(0.05):
        time.sleep(60)
    assert time.perf_counter() - start < 50


def test_a_library_that_catches_exceptions_does_not_stop_it() -> None:
    caught: list[str] = []

    def swallow() -> None:
        try:
            time.sleep(60)
        except Exception:  # noqa: BLE001 - as libraries do
            caught.append("swallowed")

    with pytest.raises(TimedOut), time_limit(0.05):
        swallow()
    assert not caught


def test_what_is_in_time_is_left_alone() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(60):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)  # no alarm comes after


def test_a_limit_that_is_over_at_once_leaves_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    before, set_ = signal.getsignal(signal.SIGALRM), signal.setitimer

    def late(which: int, seconds: float, again: float = 0.0) -> None:
        """As on a busy machine: the time is over before the next line runs."""
        set_(which, seconds, again)
        if seconds:
            signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(signal, "setitimer", late)
    with pytest.raises(TimedOut), time_limit(60):
        pytest.fail("it began")
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_zero_is_no_limit() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(0):
        assert signal.getsignal(signal.SIGALRM) is before
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_outside_of_the_main_thread_there_is_none() -> None:
    done: list[bool] = []

    def work() -> None:
        with time_limit(0.01):
            time.sleep(0.05)
        done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
