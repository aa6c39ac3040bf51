from __future__ import annotations

import numpy as np
import pytest

from benchmarks.harness import stats


def test_a_ratio_is_free_of_what_slows_whole_rounds() -> None:
    rounds = np.random.default_rng(1).uniform(1, 3, 30)
    assert stats.ratio(list(2 * rounds), list(rounds)) == pytest.approx((2, 2, 2))


def test_a_ratio_has_an_interval_and_is_reproducible() -> None:
    rng = np.random.default_rng(2)
    a, b = list(rng.normal(1.2, 0.05, 30)), list(rng.normal(1.0, 0.05, 30))
    found = stats.ratio(a, b)
    assert found == stats.ratio(a, b)
    assert found.low < found.value < found.high
    assert found.low < 1.2 < found.high
    assert found.high - found.low < 0.15


def test_a_ratio_wants_pairs() -> None:
    with pytest.raises(ValueError):
        stats.ratio([1.0], [1.0, 2.0])
    with pytest.raises(ValueError):
        stats.ratio([], [])
