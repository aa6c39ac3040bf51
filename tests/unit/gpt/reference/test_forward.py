"""The reference of the whole forward pass: its errors by dtype, and that it is causal."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from gpt.config import PRESETS
from gpt.parameters.weights import random_weights
from gpt.reference import forward as reference


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("f32", 1e-8, 1e-5), ("tf32", 1e-5, 5e-3), ("f16", 1e-5, 1e-2), ("bf16", 1e-4, 1e-1)]
)
def test_eager_is_as_far_off_as_its_dtype(dtype: str, low: float, high: float) -> None:
    config = PRESETS["nano"]
    weights = random_weights(config, 1).astype(dtype)
    tokens = np.random.default_rng(2).integers(0, config.vocab_size, (2, 33))
    exact, rounded = reference.float64(config, weights, tokens), reference.eager(config, weights, tokens, dtype=dtype)
    assert rounded.dtype == {"f16": np.float16, "bf16": ml_dtypes.bfloat16}.get(dtype, np.float32)
    error = np.abs(rounded.astype(np.float64) - exact).max() / np.abs(exact).max()
    assert low < error < high


def test_parts_of_rows_and_heads_give_the_whole_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    config = PRESETS["nano"]
    weights = random_weights(config, 1)
    tokens = np.random.default_rng(2).integers(0, config.vocab_size, (2, 33))
    whole = reference.float64(config, weights, tokens)
    parts: list[int] = []
    in_threads = reference.in_threads
    monkeypatch.setattr(reference, "ROWS", 16)
    monkeypatch.setattr(reference, "HEADS", 1)
    monkeypatch.setattr(reference, "in_threads", lambda *of: parts.append(len(of[1])) or in_threads(*of))
    assert np.abs(reference.float64(config, weights, tokens) - whole).max() < 1e-12
    assert parts == [*[5, config.n_head, 5, 5, 5] * config.n_layer, 5]


def test_a_later_token_does_not_change_earlier_logits() -> None:
    config = PRESETS["nano"]
    weights = random_weights(config, 1)
    tokens = np.random.default_rng(2).integers(0, config.vocab_size, (1, 9))
    changed = tokens.copy()
    changed[0, 6] += 1
    difference = np.abs(reference.float64(config, weights, tokens) - reference.float64(config, weights, changed))
    assert difference[0, :6].max() < 1e-12
    assert difference[0, 6:].max() > 1e-3
