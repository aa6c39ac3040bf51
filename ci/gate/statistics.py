"""What the rounds of one measurement say. Every function takes the rounds along the last axis, and as many cells or
simulated runs as there are along the others."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .thresholds import Bimodal

Floats = NDArray[np.float64]
RESAMPLES = 4000


def log_changes(ours: Floats, base: Floats) -> Floats:
    """ln(ours / base) of each round: what slowed a whole round down, a clock or a neighbour, is not in it."""
    return np.log(ours / base)


@functools.cache
def _middle_ranks(rounds: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ranks of the two middle values of each resample. A resample's median depends on the drawn ranks alone, so
    that one draw serves all cells with as many rounds."""
    drawn = np.sort(np.random.default_rng(seed).integers(0, rounds, (RESAMPLES, rounds)), axis=-1)
    return drawn[:, (rounds - 1) // 2], drawn[:, rounds // 2]


def median_interval(pairs: Floats, confidence: float) -> tuple[Floats, Floats, Floats]:
    """The median of log changes with its paired bootstrap interval (the percentiles of the medians of resampled
    rounds): median, low, high."""
    ordered = np.sort(pairs, axis=-1)
    lower, upper = _middle_ranks(pairs.shape[-1])
    medians = (ordered[..., lower] + ordered[..., upper]) / 2
    tail = (1 - confidence) / 2
    low, high = np.quantile(medians, [tail, 1 - tail], axis=-1)
    return np.median(ordered, axis=-1), low, high


@dataclass(frozen=True)
class Split:
    """Rounds parted at their widest gap: its width, and the medians of the two groups."""

    gap: Floats
    low: Floats
    high: Floats

    def bimodal(self, rule: Bimodal) -> NDArray[np.bool_]:
        """Whether `rule` takes them for two groups."""
        return (self.gap >= rule.gap) & (self.gap >= rule.half * (self.high - self.low))

    def beyond(self, tolerance: float) -> NDArray[np.bool_]:
        """Whether both groups lie beyond a change of `tolerance` on one side, so that either says the same."""
        return (np.expm1(self.low) > tolerance) | (np.expm1(self.high) < -tolerance)


def split(pairs: Floats, share: float) -> Split:
    """Parts rounds where each group has at least `share` of them. Raises ValueError if these are too few."""
    ordered = np.sort(pairs, axis=-1)
    rounds = ordered.shape[-1]
    fewest = max(2, math.ceil(share * rounds))
    if rounds < 2 * fewest:
        raise ValueError(f"{rounds} rounds do not make two groups of {fewest}")
    gaps = np.diff(ordered, axis=-1)[..., fewest - 1 : rounds - fewest]
    lower = np.argmax(gaps, axis=-1) + fewest  # how many rounds the lower group has

    def median(first: NDArray[np.int64], count: NDArray[np.int64]) -> Floats:
        places = np.stack([first + (count - 1) // 2, first + count // 2], axis=-1)
        return np.take_along_axis(ordered, places, axis=-1).mean(axis=-1)

    return Split(gaps.max(axis=-1), median(np.zeros_like(lower), lower), median(lower, rounds - lower))


def drift(times: Floats) -> Floats:
    """By how much the median of the last third of the rounds differs from that of the first, as a share."""
    third = max(1, times.shape[-1] // 3)
    first, last = np.median(times[..., :third], axis=-1), np.median(times[..., -third:], axis=-1)
    return np.abs(last / first - 1)
