"""What holds of every draw, whatever the logits and the options."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt.generate import sample
from toolchain.errors import ConformanceError

LOGITS = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=40).map(lambda x: np.array(x, np.float32))
TEMPERATURES = st.floats(1e-310, 1e3)
TOP_P = st.none() | st.floats(1e-6, 1.0)


@given(LOGITS, st.integers(0, 9), TEMPERATURES, st.none() | st.integers(1, 60), TOP_P)
def test_a_draw_is_among_the_top_k(
    logits: np.ndarray, seed: int, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    token = sample(logits, np.random.default_rng(seed), temperature, top_k, top_p)
    assert (logits > logits[token]).sum() < (top_k or len(logits))
    assert token == sample(logits, np.random.default_rng(seed), temperature, top_k, top_p)


@given(LOGITS, st.integers(0, 9), st.floats(0.1, 10.0), st.floats(1e-6, 1.0))
def test_those_likelier_than_a_draw_do_not_reach_top_p(
    logits: np.ndarray, seed: int, temperature: float, top_p: float
) -> None:
    token = sample(logits, np.random.default_rng(seed), temperature, None, top_p)
    weights = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    assert weights[logits > logits[token]].sum() / weights.sum() < top_p + 1e-9


@given(LOGITS, st.integers(0, 9), TEMPERATURES)
def test_one_candidate_is_the_first_of_the_likeliest(logits: np.ndarray, seed: int, temperature: float) -> None:
    assert sample(logits, np.random.default_rng(seed), temperature, 1, None) == int(np.argmax(logits))


@given(LOGITS, st.floats(-100, 100), st.integers(0, 9))
def test_a_shift_of_all_logits_changes_no_draw(logits: np.ndarray, shift: float, seed: int) -> None:
    exact = np.round(logits.astype(np.float64))
    shifted = exact + round(shift)
    draws = [sample(x, np.random.default_rng(seed), 1.0, None, 0.9) for x in (exact, shifted)]
    assert draws[0] == draws[1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_no_draw_from_logits_that_are_not_finite(bad: float) -> None:
    with pytest.raises(ConformanceError, match="NaN or infinity"):
        sample(np.array([0.0, bad, 1.0]), np.random.default_rng(0), 1.0, None, None)
