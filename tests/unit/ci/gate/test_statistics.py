from __future__ import annotations

import numpy as np
import pytest

from ci.gate.statistics import drift, median_interval, split
from ci.gate.thresholds import Bimodal

RULE = Bimodal(gap=0.02, half=0.5, share=0.2)


def test_the_interval_is_the_bootstraps_of_whole_rounds() -> None:
    pairs = np.random.default_rng(3).standard_normal(30)
    drawn = np.random.default_rng(4).integers(0, 30, (20_000, 30))
    wanted = np.quantile(np.median(pairs[drawn], axis=-1), [0.005, 0.995])
    value, low, high = median_interval(pairs, 0.99)
    assert value == np.median(pairs)
    assert [low, high] == pytest.approx(wanted, abs=0.1)


def test_cells_beside_each_other_are_judged_as_alone() -> None:
    pairs = np.random.default_rng(5).standard_normal((4, 20))
    together = median_interval(pairs, 0.95)
    for i, one in enumerate(pairs):
        assert [part[i] for part in together] == list(median_interval(one, 0.95))
        assert split(pairs, 0.2).gap[i] == split(one, 0.2).gap


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    pairs = np.random.default_rng(6).standard_normal((600, 30))
    _, low, high = median_interval(pairs, 0.99)
    assert ((low < 0) & (high > 0)).mean() > 0.975


def test_groups_need_a_gap_and_enough_rounds() -> None:
    pairs = np.array([0.0, 0.001, 0.002, 0.003, 0.1, 0.101, 0.102])
    found = split(pairs, 0.2)
    assert (found.low, found.high) == pytest.approx((0.0015, 0.101))
    assert found.bimodal(RULE)
    assert not split(pairs * 0.1, 0.2).bimodal(RULE)
    assert not split(np.array([0.0] * 9 + [0.5]), 0.2).bimodal(RULE)  # one outlier is no group
    with pytest.raises(ValueError, match="do not make two groups"):
        split(np.array([1.0, 2.0, 3.0]), 0.2)


def test_drift_compares_the_ends() -> None:
    assert drift(np.array([1.0, 1.0, 5.0, 5.0, 1.1, 1.1])) == pytest.approx(0.1)
