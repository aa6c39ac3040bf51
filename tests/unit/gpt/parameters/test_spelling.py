from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpt.config import LLAMAS, GPTConfig
from gpt.parameters.spelling import LINEAR, input_first, our_names
from gpt.parameters.weights import Weights
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


def test_names_with_a_prefix_a_head_and_masks(config: GPTConfig, weights: Weights) -> None:
    stored = {f"transformer.{name}": tensor for name, tensor in weights.items()}
    stored["lm_head.weight"] = stored["transformer.wte.weight"]
    stored["transformer.h.0.attn.masked_bias"] = np.zeros(1)
    names = our_names(config, stored, lambda one, other: stored[one] is stored[other], "there")
    assert names == {name: f"transformer.{name}" for name in weights}


def always(one: str, other: str) -> bool:
    return bool(one and other)


def never(one: str, other: str) -> bool:
    return not (one and other)


def test_the_names_of_a_llama() -> None:
    """Its head is its own where the config does not tie it."""
    stored = ["model.embed_tokens.weight", "layers.0.rotary_emb.inv_freq", "lm_head.weight"]
    tied, own = (replace(LLAMAS["nano"], tied=tied) for tied in (True, False))
    embedding = {"embed_tokens.weight": "model.embed_tokens.weight"}
    assert our_names(tied, stored, always, "there") == embedding
    assert our_names(own, stored, never, "there") == embedding | {"lm_head.weight": "lm_head.weight"}
    assert our_names(tied, stored[2:], never, "there") == {"embed_tokens.weight": "lm_head.weight"}
    with pytest.raises(UsageError, match=r"there: lm_head\.weight differs from embed_tokens\.weight"):
        our_names(tied, stored, never, "there")
    with pytest.raises(UsageError, match=r"embed_tokens\.weight is there twice, with `model\.` before it and without"):
        our_names(tied, [*stored, "embed_tokens.weight"], always, "there")
