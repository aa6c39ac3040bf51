"""Draws from logits that are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt.sampling import Sampling, sample
from toolchain.errors import ConformanceError, UsageError

LOGITS = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=40).map(lambda x: np.array(x, np.float32))
TEMPERATURES = st.floats(1e-310, 1e3)
TOP_P = st.none() | st.floats(1e-6, 1.0)


def test_top_k_and_top_p_cut_the_tail() -> None:
    logits = np.log(np.array([0.1, 0.5, 0.15, 0.25]))
    rng = np.random.default_rng(0)

    def drawn(temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None) -> set[int]:
        return {sample(logits, rng, temperature, top_k, top_p) for _ in range(300)}

    assert drawn() == {0, 1, 2, 3}
    assert drawn(top_k=2) == {1, 3}
    assert drawn(top_p=0.5) == {1}
    assert drawn(top_p=0.51) == {1, 3}
    assert drawn(top_p=0.76) == {1, 2, 3}
    assert drawn(top_k=3, top_p=0.8) == {1, 3}
    assert drawn(temperature=0.01) == {1}


@pytest.mark.parametrize(
    ("count", "top_p", "kept"), [(10, 0.8, 8), (10, 0.3, 3), (20, 0.55, 11), (5, 1.0, 5), (3, 1e-12, 1)]
)
def test_equal_tokens_that_reach_top_p_are_enough(count: int, top_p: float, kept: int) -> None:
    rng = np.random.default_rng(0)
    assert {sample(np.zeros(count, np.float32), rng, 1.0, None, top_p) for _ in range(300)} == set(range(kept))


@given(st.lists(st.integers(1, 9), min_size=2, max_size=12), st.integers(0, 99), st.data())
def test_a_sum_that_is_top_p_reaches_it(counts: list[int], seed: int, data: st.DataObject) -> None:
    """Tokens of `counts` of all, of which a number of the likeliest have exactly top_p together."""
    ordered = sorted(counts, reverse=True)
    kept = data.draw(st.integers(1, len(counts)))
    top_p = sum(ordered[:kept]) / sum(counts)
    token = sample(np.log(np.array(ordered) / sum(counts)), np.random.default_rng(seed), 1.0, None, top_p)
    assert token < kept


def test_sampling_follows_the_probabilities() -> None:
    rng = np.random.default_rng(0)
    counts = np.bincount([sample(np.log([0.2, 0.8]), rng, 1.0, None, None) for _ in range(2000)])
    assert abs(counts[1] / 2000 - 0.8) < 0.04
    flatter = np.bincount([sample(np.log([0.2, 0.8]), rng, 2.0, None, None) for _ in range(2000)])
    assert abs(flatter[1] / 2000 - 2 / 3) < 0.04


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


def test_a_penalty_lowers_what_the_text_has_already() -> None:
    logits, rng = np.array([2.0, 1.5, -1.0, -1.2], np.float32), np.random.default_rng(0)
    greedy = Sampling(temperature=0, repetition_penalty=2.0)
    assert greedy.draw(logits, rng, set()) == 0
    assert greedy.draw(logits, rng, {0}) == 1
    assert greedy.draw(logits, rng, {0, 1}) == 0  # 1.0 against 0.75
    assert Sampling(temperature=0, repetition_penalty=3.0).draw(logits[2:], rng, [0]) == 1  # -3 against -1.2
    assert logits[0] == 2.0
    few = Sampling(top_k=1, repetition_penalty=2.0)
    assert few.draw(logits, rng, [0]) == 1


def test_the_device_draws_only_what_needs_no_host() -> None:
    assert Sampling(temperature=0).on_device
    assert not Sampling().on_device
    assert not Sampling(temperature=0, repetition_penalty=1.1).on_device


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"temperature": -0.1}, "temperature is -0.1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"top_k": 0}, "top_k is 0"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.1}, "top_p is 1.1"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0"),
        ({"repetition_penalty": float("nan")}, "repetition_penalty is nan"),
    ],
)
def test_values_that_make_no_sense(options: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Sampling(**options)  # pyright: ignore[reportArgumentType]
