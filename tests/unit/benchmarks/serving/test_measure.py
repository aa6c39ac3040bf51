from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.serving.load import Arrival
from benchmarks.serving.measure import serve
from gpt.batches.batching import Drawn


class Clock:
    """Seconds that pass when a step runs, or somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds


class Counting:
    """Draws a token of each text in a step of 10 ms."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._left = clock, dict[int, int]()
        self._added = 0

    @property
    def busy(self) -> bool:
        return bool(self._left)

    @property
    def schedule(self) -> Any:
        return SimpleNamespace(running=len(self._left))

    def add(self, tokens: list[int], count: int, sampling: object) -> int:
        del tokens, sampling
        self._left[self._added] = count
        self._added += 1
        return self._added - 1

    def step(self) -> list[Drawn]:
        self._clock.now += 0.01
        self._left = {text: left - 1 for text, left in self._left.items()}
        drawn = [Drawn(text, 7, left == 0) for text, left in self._left.items()]
        self._left = {text: left for text, left in self._left.items() if left}
        return drawn


@pytest.fixture
def run() -> Callable[[list[Arrival]], Any]:
    def serving(load: list[Arrival]) -> Any:
        clock = Clock()
        batching: Any = Counting(clock)
        return (*serve(batching, load, 5.0, clock, clock.sleep), clock)

    return serving


def test_times_count_from_when_a_request_comes(run: Callable[[list[Arrival]], Any]) -> None:
    """The second comes while the first runs: it waits for the end of that step. The third comes to nobody."""
    load = [Arrival([1, 2], 3, 0.0), Arrival([1], 1, 0.005), Arrival([1, 2, 3], 2, 1.0)]
    served, tokens, clock = run(load)
    assert tokens == {0: [7, 7, 7], 1: [7], 2: [7, 7]}
    assert (served.requests, served.new, served.read, served.steps) == (3, 6, 6, 5)
    assert served.seconds == pytest.approx(1.02)
    assert clock.slept == pytest.approx(0.97)
    assert (served.first_p50_ms, served.between_p50_ms) == (pytest.approx(10), pytest.approx(10))
    assert served.first_p99_ms == pytest.approx(14.9)  # of 10, 10 and 15
    assert served.row["new_per_s"] == pytest.approx(6 / 1.02)


def test_one_token_each_has_no_time_between(run: Callable[[list[Arrival]], Any]) -> None:
    served, _, _ = run([Arrival([1], 1, 0.0)])
    assert served.first_p99_ms == pytest.approx(10)
    assert served.between_p50_ms != served.between_p50_ms  # not a number
