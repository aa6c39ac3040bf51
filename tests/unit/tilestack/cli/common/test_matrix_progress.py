"""The progress messages of a run of the matrix."""

from __future__ import annotations

import io
import re
import threading
import time

import pytest

from conformance.results.result import CellResult
from tilestack.cli.common import matrix_progress
from tilestack.cli.common.matrix_progress import Show

PASSED = CellResult("gelu-py-f32-cpu", "py", "gelu", "f32", "cpu", "cpu interpreter", "M=1", "passed", 0.1, 0.2)
FAILED = CellResult(
    "gelu-py-f32-cpu", "py", "gelu", "f32", "cpu", "cpu interpreter", "M=2", "failed", detail="off by 3"
)


def test_the_time_left_goes_by_the_work_not_by_the_count_of_jobs() -> None:
    now = [0.0]
    show = Show(rows=False, lines=True, say=print, now=lambda: now[0])
    now[0] = 9.0
    assert show.line() == "0 cells in 9 s"
    show([PASSED], 50, 1000, (1, 40))
    assert show.line() == "1 cells in 9 s, 1 of 40 jobs, 5% of the work"  # too early to say
    now[0] = 20.0
    show([PASSED, PASSED], 250, 1000, (2, 40))
    assert show.line() == "3 cells in 20 s, 2 of 40 jobs, 25% of the work, about 60 s left"


def test_each_part_of_a_run_says_what_is_left_of_it() -> None:
    """The native tools come after an executor: neither its count nor its pace is theirs."""
    now = [0.0]
    show = Show(rows=False, lines=True, say=print, now=lambda: now[0])
    show([], 0, 10, (0, 1), "cpu interpreter")
    now[0] = 100.0
    show([PASSED], 10, 10, (1, 1), "cpu interpreter")
    show([], 0, 800, (0, 140), "native tools")
    assert show.line() == "1 cells in 100 s, native tools: 0 of 140 jobs, 0% of the work"
    now[0] = 110.0
    show([PASSED], 200, 800, (35, 140), "native tools")
    assert show.line() == "2 cells in 110 s, native tools: 35 of 140 jobs, 25% of the work, about 30 s left"


def test_where_output_is_no_terminal_there_is_a_line_even_while_no_job_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_progress, "EVERY_S", 0.01)
    said: list[str] = []
    twice = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 2:
            twice.set()

    with Show(rows=False, lines=True, say=say, now=lambda: 0.0):
        assert twice.wait(60)
    assert said[0] == "0 cells in 0 s"


def test_no_line_comes_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_progress, "EVERY_S", 0.01)
    said: list[str] = []
    begun = threading.Event()

    def say(line: str) -> None:
        begun.set()
        time.sleep(0.1)
        said.append(line)

    with Show(rows=False, lines=True, say=say):
        assert begun.wait(60)
    before = len(said)
    time.sleep(0.2)
    assert len(said) == before > 0


def test_failures_are_always_said_and_passes_where_asked() -> None:
    found: list[str] = []
    for rows in (False, True):
        show = Show(rows=rows, lines=False, say=found.append)
        show([PASSED, FAILED], 1, 2, (1, 2))
    failure = "failed: gelu-py-f32-cpu M=2: off by 3"
    assert found == [failure, "passed: gelu-py-f32-cpu M=1  50 % of its bound", failure]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, quiet: bool = False, **environment: str) -> str:
    """What one job leaves on a stream."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with Show.on(stream, quiet=quiet) as show:
        show([PASSED, FAILED], 1, 2, (1, 2))
    return stream.getvalue()


def test_a_terminal_shows_rows_in_colour_and_a_line_below_them(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, Terminal())
    clear = "\r\x1b[2K"
    assert f"{clear}\x1b[32mpassed\x1b[0m: gelu-py-f32-cpu M=1  50 % of its bound\n" in text
    assert f"{clear}\x1b[31mfailed\x1b[0m: gelu-py-f32-cpu M=2: off by 3\n" in text
    assert re.search(rf"{re.escape(clear)}2 cells in \d+ s, 1 of 2 jobs, 50% of the work", text)
    assert text.endswith(clear)
    assert "passed" not in shown(monkeypatch, Terminal(), quiet=True)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    text = shown(monkeypatch, Terminal(), **environment)
    assert "passed: gelu-py-f32-cpu M=1" in text and "\x1b" not in text and "\r" not in text
    assert "\x1b" in shown(monkeypatch, Terminal(), NO_COLOR="")


def test_a_file_gets_neither_rows_nor_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO()) == "failed: gelu-py-f32-cpu M=2: off by 3\n"
