"""Medians and ratios, with intervals that do not assume any distribution of the samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformance.results.stats import Interval, median

__all__ = ["Interval", "median", "ratio"]
RESAMPLES = 4000


def ratio(above: Sequence[float], below: Sequence[float], seed: int = 0) -> Interval:
    """median(above) / median(below) of samples that were taken in turns. The interval comes from a paired bootstrap. It
    draws whole rounds, so that anything that slowed a round down (a clock, a temperature) slows both sides."""
    if len(above) != len(below) or not above:
        raise ValueError(
            f"{len(above)} and {len(below)} samples: a paired ratio needs the same number of both, at least one"
        )
    pairs = np.array([above, below])  # (2, rounds)
    rounds = pairs.shape[1]
    drawn = np.random.default_rng(seed).integers(0, rounds, (RESAMPLES, rounds))
    medians = np.median(pairs[:, drawn], axis=-1)  # (2, RESAMPLES)
    low, high = np.percentile(medians[0] / medians[1], [2.5, 97.5])
    return Interval(float(np.median(above) / np.median(below)), float(low), float(high))
