from __future__ import annotations

import numpy as np
import pytest

from conformance.results import stats


def test_the_interval_of_30_samples_are_the_10th_and_the_21st() -> None:
    """These ranks are in published tables of order statistics."""
    found = stats.median([float(n) for n in range(1, 31)])
    assert found == (15.5, 10, 21)


@pytest.mark.parametrize("count", [6, 9, 30])
def test_the_interval_holds_the_true_median(count: int) -> None:
    rng = np.random.default_rng(3)
    runs = rng.lognormal(0, 1, (4000, count))
    hits = sum(low <= 1 <= high for _, low, high in (stats.median(list(run)) for run in runs))
    assert hits / len(runs) >= 0.945


def test_few_samples_give_their_extremes() -> None:
    assert stats.median([3.0, 1.0, 2.0]) == (2, 1, 3)
    assert stats.median([4.0]) == (4, 4, 4)
    with pytest.raises(ValueError):
        stats.median([])
