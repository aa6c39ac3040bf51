"""The reference of the family llama: against transformers' LlamaForCausalLM and Qwen3ForCausalLM, and itself in pieces.

Where transformers is not installed, logits that it once computed stand in for it: golden_llamas.npy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.reference import float64 as ops
from gpt.parameters.weights import random_weights
from gpt.reference import forward as reference
from gpt.reference.llama import Cache, forward

from ..llamas import CONFIGS, TOKENS

GOLDEN = (
    Path(__file__).parent.parent / "golden_llamas.npy"
)  # (models, B, V) f32 of transformers 5.17, after the last token


def close(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    """Logits are about 1, and transformers' cosines and sines are f32."""
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_that_transformers_once_computed(name: str) -> None:
    config, _ = CONFIGS[name]
    found = reference.float64(config, random_weights(config, 8), TOKENS)
    close(found[:, -1], np.load(GOLDEN)[list(CONFIGS).index(name)])


@pytest.mark.needs("transformers")
@pytest.mark.parametrize("name", CONFIGS)
def test_logits_of_transformers(name: str) -> None:
    import torch
    import transformers

    config, row = CONFIGS[name]
    weights = random_weights(config, 8)
    family = {"llama": "Llama", "qwen3": "Qwen3"}[row["model_type"]]
    made = getattr(transformers, f"{family}Config")(**{key: row[key] for key in row if key != "model_type"})
    model = getattr(transformers, f"{family}ForCausalLM")(made).double().eval()
    head = "lm_head.weight"
    state = {n if n == head else f"model.{n}": torch.from_numpy(w.astype(np.float64)) for n, w in weights.items()}
    missing, unknown = model.load_state_dict(state, strict=False)
    assert missing == [head] * config.tied and not unknown
    with torch.no_grad():
        wanted = model(torch.from_numpy(TOKENS.astype(np.int64))).logits.numpy()
    close(reference.float64(config, weights, TOKENS), wanted)
    close(np.load(GOLDEN)[list(CONFIGS).index(name)], wanted[:, -1])


@pytest.mark.parametrize("name", CONFIGS)
def test_with_a_cache_tokens_may_come_in_pieces(name: str) -> None:
    config, _ = CONFIGS[name]
    weights = random_weights(config, 8)
    whole = reference.float64(config, weights, TOKENS)
    cache = Cache(config, len(TOKENS))
    pieces = [forward(ops, config, weights, TOKENS[:, a:b], cache) for a, b in ((0, 9), (9, 10), (10, 24))]
    assert cache.length == 24 and cache.layers[1][0].shape == (2, 24, config.kv_heads, config.head_size)
    np.testing.assert_allclose(np.concatenate(pieces, axis=1), whole, rtol=0, atol=1e-12)


def test_a_later_token_does_not_change_earlier_logits() -> None:
    config, _ = CONFIGS["llama"]
    weights = random_weights(config, 8)
    changed = TOKENS.copy()
    changed[:, 20] += 1
    difference = np.abs(reference.float64(config, weights, TOKENS) - reference.float64(config, weights, changed))
    assert difference[:, :20].max() < 1e-12 and difference[:, 20:].max() > 1e-3


@pytest.mark.parametrize(
    ("model", "change"),
    [
        ("llama", {"rope_base": 9000.0}), ("llama", {"eps": 1e-4}), ("llama3", {"rope_scaling": None}),
        ("qwen3", {"qk_norm": False}),
    ],
)  # fmt: skip
def test_what_the_config_says_is_seen_in_the_logits(model: str, change: dict[str, Any]) -> None:
    config, _ = CONFIGS[model]
    weights = random_weights(config, 8)
    changed = replace(config, **change)
    assert np.abs(reference.float64(config, weights, TOKENS) - reference.float64(changed, weights, TOKENS)).max() > 1e-5


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(("dtype", "low", "high"), [("f32", 1e-8, 1e-5), ("f16", 1e-5, 1e-2), ("bf16", 1e-4, 1e-1)])
def test_eager_is_as_far_off_as_its_dtype(name: str, dtype: str, low: float, high: float) -> None:
    config, _ = CONFIGS[name]
    weights = random_weights(config, 8).astype(dtype)
    exact = reference.float64(config, weights, TOKENS)
    rounded = reference.eager(config, weights, TOKENS, dtype=dtype).astype(np.float64)
    assert low < np.abs(rounded - exact).max() / np.abs(exact).max() < high
