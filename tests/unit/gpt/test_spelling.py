from __future__ import annotations

import numpy as np
import pytest

from gpt.config import GPTConfig
from gpt.spelling import LINEAR, input_first, our_names
from gpt.weights import Weights
from toolchain.errors import UsageError


def turned(weights: Weights, *names: str) -> dict[str, np.ndarray]:
    """With the linear weights of these names (out, in)."""
    return {n: x.T if n.endswith(tuple(f"{name}.weight" for name in names)) else x for n, x in weights.items()}


def test_weights_of_linear_layers_are_turned(config: GPTConfig, weights: Weights) -> None:
    for stored in (weights, turned(weights, *LINEAR)):
        found = input_first(config, stored, "there")
        assert all(np.array_equal(found[name], tensor) for name, tensor in weights.items())
        assert found.keys() == weights.keys()


def test_a_mixture_is_refused(config: GPTConfig, weights: Weights) -> None:
    with pytest.raises(UsageError, match=r"there: h.0.attn.c_attn.weight is stored \(in, out\), h.0.mlp.c_fc.weight"):
        input_first(config, turned(weights, "mlp.c_fc"), "there")


def test_names_with_a_prefix_a_head_and_masks(weights: Weights) -> None:
    stored = {f"transformer.{name}": tensor for name, tensor in weights.items()}
    stored["lm_head.weight"] = stored["transformer.wte.weight"]
    stored["transformer.h.0.attn.masked_bias"] = np.zeros(1)
    assert our_names(stored, "there").keys() == weights.keys()
