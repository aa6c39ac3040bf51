"""Times of a load on a changing batch: how long each request waits for its first token, and for each one after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpt.batches.batching import Batching
from gpt.sampling import Sampling

from .load import Arrival

GREEDY = Sampling(temperature=0)


@dataclass(frozen=True)
class Served:
    """A load's times. `rate`: requests offered a second. `new`, `read`: tokens, new ones and those of prompts. Times in
    ms: until a request's first token, counted from when it came, and between its tokens. `running`: texts in a step."""

    rate: float
    requests: int
    seconds: float
    steps: int
    new: int
    read: int
    first_p50_ms: float
    first_p99_ms: float
    between_p50_ms: float
    between_p99_ms: float
    running: float

    @property
    def row(self) -> dict[str, Any]:
        found = asdict(self)
        found["rate"] = None if np.isinf(self.rate) else self.rate  # JSON has no infinity
        return found | {"new_per_s": self.new / self.seconds, "requests_per_s": self.requests / self.seconds}


def serve(
    batching: Batching, load: Sequence[Arrival], rate: float, clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], object] = time.sleep,
) -> tuple[Served, dict[int, list[int]]]:  # fmt: skip
    """Run a load to its end. Also returns the new tokens of each request."""
    waiting = sorted(range(len(load)), key=lambda index: load[index].at_s, reverse=True)
    began: dict[int, int] = {}  # the request of each text
    times: dict[int, list[float]] = {index: [] for index in waiting}
    tokens: dict[int, list[int]] = {index: [] for index in waiting}
    running: list[int] = []
    start = clock()
    while waiting or batching.busy:
        now = clock() - start
        while waiting and load[waiting[-1]].at_s <= now:
            index = waiting.pop()
            began[batching.add(load[index].tokens, load[index].count, GREEDY)] = index
        if not batching.busy:
            sleep(load[waiting[-1]].at_s - now)
            continue
        drawn = batching.step()
        now = clock() - start
        running.append(batching.schedule.running)
        for each in drawn:
            times[began[each.text]].append(now)
            tokens[began[each.text]].append(-1 if each.token is None else each.token)
    seconds = clock() - start
    first = [1e3 * (at[0] - load[index].at_s) for index, at in times.items()]
    between = [1e3 * gap for at in times.values() for gap in np.diff(at).tolist()]
    served = Served(
        rate, len(load), seconds, len(running), sum(map(len, tokens.values())), sum(len(each.tokens) for each in load),
        *_p50_and_p99(first), *_p50_and_p99(between), float(np.mean(running)),
    )  # fmt: skip
    return served, tokens


def _p50_and_p99(times: Sequence[float]) -> tuple[float, float]:
    middle, late = np.percentile(times, [50, 99]) if times else (float("nan"), float("nan"))
    return float(middle), float(late)
