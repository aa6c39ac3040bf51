"""The progress messages of a run of the matrix."""

from __future__ import annotations

import threading

import pytest

from conformance.result import Row
from tilestack import matrix_progress
from tilestack.matrix_progress import Show

PASSED = Row("gelu-py-f32-cpu", "py", "gelu", "f32", "cpu", "cpu interpreter", "M=1", "passed", 0.1, 0.2)
FAILED = Row("gelu-py-f32-cpu", "py", "gelu", "f32", "cpu", "cpu interpreter", "M=2", "failed", detail="off by 3")


def test_the_time_left_goes_by_the_work_not_by_the_count_of_jobs() -> None:
    now = [0.0]
    show = Show(rows=False, lines=True, say=print, now=lambda: now[0])
    now[0] = 9.0
    assert show.line() == "0 cells in 9 s"
    show([PASSED], 50, 1000)
    assert show.line() == "1 cells in 9 s, 5% of the work"  # too early to say
    now[0] = 20.0
    show([PASSED, PASSED], 250, 1000)
    assert show.line() == "3 cells in 20 s, 25% of the work, about 60 s left"


def test_where_output_is_no_terminal_there_is_a_line_even_while_no_job_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_progress, "EVERY_S", 0.01)
    said: list[str] = []
    twice = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 2:
            twice.set()

    with Show(rows=False, lines=True, say=say, now=lambda: 0.0):
        assert twice.wait(5)
    assert said[0] == "0 cells in 0 s"


def test_failures_are_always_said_and_passes_where_asked() -> None:
    found: list[str] = []
    for rows in (False, True):
        show = Show(rows=rows, lines=False, say=found.append)
        show([PASSED, FAILED], 1, 2)
    failure = "failed: gelu-py-f32-cpu M=2: off by 3"
    assert found == [failure, "passed: gelu-py-f32-cpu M=1  50 % of its bound", failure]
