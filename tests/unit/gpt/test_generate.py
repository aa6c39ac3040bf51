"""Sequences that a model makes: with logits that are known, and of the model itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt import reference
from gpt.config import GPTConfig
from gpt.generate import generate, sample
from gpt.model import GPT
from gpt.weights import Weights
from toolchain.errors import ConformanceError

LOGITS = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=40).map(lambda x: np.array(x, np.float32))
TEMPERATURES = st.floats(1e-310, 1e3)
TOP_P = st.none() | st.floats(1e-6, 1.0)


def test_greedy_generation_takes_the_likeliest_each_time(config: GPTConfig, weights: Weights, model: GPT) -> None:
    sequence = [7, 100, 256]
    found = list(generate(model, sequence, max_new_tokens=6, temperature=0))
    for token in found:
        assert token == reference.float64(config, weights, np.array([sequence]))[0, -1].argmax()
        sequence.append(token)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nothing_is_generated_from_logits_that_are_not_finite(
    config: GPTConfig, weights: Weights, launcher: Any, temperature: float
) -> None:
    large = {name: np.full_like(w, 6e4) if name.startswith("ln_f") else w for name, w in weights.items()}
    model = GPT(config, Weights(large), launcher, "f16")  # its logits overflow
    with np.errstate(all="ignore"), pytest.raises(ConformanceError, match="NaN or infinity"):
        list(generate(model, [1, 2], max_new_tokens=3, temperature=temperature))


def test_generation_stops(model: GPT) -> None:
    found = list(generate(model, [7, 100], max_new_tokens=8, seed=3))
    assert len(found) == 8
    index = next(i for i in range(2, 8) if found[i] not in found[:i])
    assert list(generate(model, [7, 100], max_new_tokens=8, seed=3, stop={found[index]})) == found[:index]
    assert list(generate(model, [7, 100], max_new_tokens=8, seed=3, stop={found[0]})) == []
    assert list(generate(model, [7], max_new_tokens=0)) == []


def test_sampling_is_seeded(model: GPT) -> None:
    def run(seed: int) -> list[int]:
        return list(generate(model, [1, 2, 3], max_new_tokens=8, temperature=1.0, seed=seed))

    assert run(1) == run(1) != run(2)


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
