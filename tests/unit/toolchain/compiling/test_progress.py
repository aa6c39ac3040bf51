from __future__ import annotations

import io

from toolchain.compiling.progress import Lines


def test_a_line_every_ten_seconds_says_done_total_and_time_left() -> None:
    now = 0.0
    stream = io.StringIO()
    lines = Lines(stream, lambda: now)
    for step in range(1, 241):
        now = step / 2
        lines(step, 480, "a cell")
    said = stream.getvalue().splitlines()
    assert len(said) == 12
    assert said[0] == "compiled 20 of 480 steps in 10 s, about 4 min left"
    assert said[-1] == "compiled 240 of 480 steps in 2 min, about 2 min left"


def test_a_short_compile_says_nothing() -> None:
    stream = io.StringIO()
    lines = Lines(stream, lambda: 0.0)
    for step in range(1, 1000):
        lines(step, 1000, "from the cache")
    assert stream.getvalue() == ""
