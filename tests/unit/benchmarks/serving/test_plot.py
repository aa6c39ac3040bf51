from __future__ import annotations

from benchmarks.serving.measure import Served
from benchmarks.serving.plot import picture


def test_each_rate_is_a_dot_in_each_curve() -> None:
    rows = [Served(rate, 256, 1.0, 9, 50, 90, 3 * rate, 9 * rate, 2.0, 4.0, 7.0).row for rate in (16.0, 32.0, 64.0)]
    drawn = picture(rows, "somewhere").render()
    assert drawn.count("<circle") == 3 * (2 + 2 + 1)
    assert "p99: 576 at 64" in drawn
    assert "somewhere" in drawn
