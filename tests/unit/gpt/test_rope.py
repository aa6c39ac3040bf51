"""Rotary positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conformance.reference.float64 import turn
from gpt.config import LLAMAS
from gpt.rope import frequencies, llama3_divisors, table

CONFIG = LLAMAS["nano"]  # heads of 32
RNG = np.random.default_rng(1)


def test_frequencies() -> None:
    found = frequencies(CONFIG)
    assert found.shape == (16,) and found[0] == 1 and found[8] == pytest.approx(0.01)
    assert np.array_equal(frequencies(replace(CONFIG, rope_scaling=(2.0,) * 16)), found / 2)


def test_scores_depend_on_the_distance_alone() -> None:
    q, k = RNG.standard_normal((2, 1, 32))

    def score(at: int, distance: int) -> float:
        (left, right) = (turn(x, *table(CONFIG, np.array([p]))) for x, p in ((q, at + distance), (k, at)))
        return float((left * right).sum())

    assert score(3, 5) == pytest.approx(score(1000, 5), abs=1e-10)
    assert abs(score(3, 5) - score(3, 6)) > 1e-3


def test_a_pair_is_one_of_each_half() -> None:
    head = np.zeros((1, 32))
    head[0, 3] = 1
    found = turn(head, *table(CONFIG, np.array([7]))).ravel()
    angle = 7 * 10000 ** (-6 / 32)
    assert found[3] == pytest.approx(np.cos(angle)) and found[3 + 16] == pytest.approx(np.sin(angle))
    assert np.count_nonzero(found) == 2


def test_llama3_divides_long_waves_alone() -> None:
    """Of Llama 3.2 1B, whose factors ggml's converter writes into rope_freqs.weight: from 1 to 32."""
    scaling = {
        "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
    }  # fmt: skip
    found = llama3_divisors(500000.0, 64, scaling)
    assert len(found) == 32 and found[0] == 1 and found[-1] == 32
    assert list(found) == sorted(found) and 1 < found[16] < 32
