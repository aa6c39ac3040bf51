"""Work in threads gives what it gives one after the other."""

from __future__ import annotations

import threading

import pytest

from gpt.parameters.threads import in_threads


def test_results_come_in_order_and_the_work_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESTACK_JOBS", "3")
    together = threading.Barrier(3, timeout=60)

    def work(number: int) -> int:
        together.wait()
        return number * number

    assert in_threads(work, range(3)) == [0, 1, 4]
    assert in_threads(str, ()) == []


def test_the_first_error_is_raised() -> None:
    def work(number: int) -> None:
        raise ValueError(number)

    with pytest.raises(ValueError, match=r"^4$"):
        in_threads(work, [4, 5, 6])
