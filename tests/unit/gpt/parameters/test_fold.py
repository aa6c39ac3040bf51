from __future__ import annotations

import math

import numpy as np
import pytest

from gpt.config import GPTConfig
from gpt.parameters.fold import fold
from gpt.parameters.weights import Weights
from gpt.reference import forward as reference


def test_folded_weights_are_the_same_function(config: GPTConfig, weights: Weights) -> None:
    tokens = np.random.default_rng(3).integers(0, config.vocab_size, (2, 17))
    wanted = reference.float64(config, weights, tokens)
    assert np.abs(reference.float64(config, fold(weights), tokens) - wanted).max() < 2e-6 * np.abs(wanted).max()


def test_nothing_that_is_added_has_a_mean_and_no_norm_in_a_layer_a_gain(config: GPTConfig, weights: Weights) -> None:
    folded = fold(weights)
    for layer in range(config.n_layer):
        for norm, product in (("ln_1", "attn.c_attn"), ("ln_2", "mlp.c_fc")):
            assert (folded[f"h.{layer}.{norm}.weight"] == 1).all()
            assert (folded[f"h.{layer}.{norm}.bias"] == 0).all()
            assert np.abs(folded[f"h.{layer}.{product}.weight"].sum(axis=0)).max() < 1e-5
        for product in ("attn.c_proj", "mlp.c_proj"):
            assert np.abs(folded[f"h.{layer}.{product}.weight"].sum(axis=1)).max() < 1e-5
            assert abs(folded[f"h.{layer}.{product}.bias"].sum()) < 1e-5
    for name in ("wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"):
        assert np.array_equal(folded[name], weights[name])


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_weights_of_16_bits_are_folded_in_f32(weights: Weights, dtype: str) -> None:
    stored = weights.astype(dtype)
    folded = fold(stored)
    assert {tensor.dtype for name, tensor in folded.items() if name.startswith("h.")} == {np.dtype(np.float32)}
    again = fold(Weights({name: np.asarray(tensor, np.float32) for name, tensor in stored.items()}))
    assert all(np.array_equal(folded[name], again[name]) for name in folded if name.startswith("h."))


def test_threads_change_nothing(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: tensor.copy() for name, tensor in weights.items()}
    monkeypatch.setenv("TILESTACK_JOBS", "1")
    one = fold(weights)
    monkeypatch.setenv("TILESTACK_JOBS", "7")
    several = fold(weights)
    assert list(one) == list(several) == list(weights)
    assert all(np.array_equal(one[name], several[name]) for name in one)
    assert all(np.array_equal(before[name], weights[name]) for name in before), "the given weights were changed"


def test_a_shift_is_multiplied_exactly_so_that_every_cpu_gives_the_same(weights: Weights) -> None:
    folded = fold(weights)
    shift, product, bias = (weights[f"h.0.{name}"] for name in ("ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias"))
    for column in range(0, product.shape[1], 5):
        added = math.fsum(float(s) * float(w) for s, w in zip(shift, product[:, column], strict=True))
        assert folded["h.0.attn.c_attn.bias"][column] == bias[column] + np.float32(added)
