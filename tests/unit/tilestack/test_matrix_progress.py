"""What a run of the matrix says while it runs."""

from __future__ import annotations

from conformance.result import Row
from tilestack.matrix_progress import Show

PASSED = Row("gelu-py-f32-cpu", "py", "gelu", "f32", "cpu", "cpu interpreter", "M=1", "passed", 0.1, 0.2)
FAILED = Row("gelu-py-f32-cpu", "py", "gelu", "f32", "cpu", "cpu interpreter", "M=2", "failed", detail="off by 3")


def test_where_output_is_no_terminal_there_is_a_line_every_ten_seconds() -> None:
    now = [0.0]
    found: list[str] = []
    show = Show(rows=False, lines=True, say=found.append, now=lambda: now[0])
    for done, now[0] in enumerate((3.0, 9.0, 12.0, 15.0, 24.0), start=1):
        show(PASSED, done, 8)
    assert found == ["3 of 8 done, 12 s, about 20 s left", "5 of 8 done, 24 s, about 14 s left"]


def test_failures_are_always_said_and_passes_where_asked() -> None:
    found: list[str] = []
    for rows in (False, True):
        show = Show(rows=rows, lines=False, say=found.append)
        show(PASSED, 1, 2)
        show(FAILED, 2, 2)
    failure = "failed: gelu-py-f32-cpu M=2: off by 3"
    assert found == [failure, "passed: gelu-py-f32-cpu M=1  50 % of its bound", failure]
