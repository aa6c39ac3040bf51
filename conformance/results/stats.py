"""Medians, with intervals that do not assume any distribution of the samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Interval:
        return Interval(self.value * factor, self.low * factor, self.high * factor)


def median(samples: Sequence[float]) -> Interval:
    """The median and its interval. The ends of the interval are two samples that enclose the true median with a
    probability of at least 95 %, by the binomial distribution. With fewer than six samples there are no such two, and
    the ends are the extremes."""
    if not samples:
        raise ValueError("no samples, no median")
    ordered = sorted(samples)
    skip = _ranks_outside(len(ordered))
    return Interval(float(np.median(ordered)), ordered[skip], ordered[-1 - skip])


def _ranks_outside(count: int, confidence: float = 0.95) -> int:
    """How many samples to leave out at each end: the largest s for which the sample after them is above the median with
    a probability of at most (1 - confidence) / 2, that is P(at most s of `count` samples are below the median)."""
    tail, at_most = (1 - confidence) / 2, 0.0
    for k in range(count // 2 + 1):
        at_most += math.comb(count, k) / 2**count
        if at_most > tail:
            return max(0, k - 1)
    return 0
