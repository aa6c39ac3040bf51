"""Llama's layers; each op is computed by the reference in numpy, the whole model by a reference of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpt.config import LLAMAS, GPTConfig
from gpt.families.llama import device_weights
from gpt.model import GPT, KVCache
from gpt.parameters.weights import Weights, random_weights
from gpt.reference import forward as reference

from ..conftest import POLICY


@pytest.fixture
def config() -> GPTConfig:
    return LLAMAS["nano"]


def tokens_of(config: GPTConfig, batch: int, length: int) -> Any:
    return np.random.default_rng(6).integers(0, config.vocab_size, (batch, length)).astype(np.int32)


@pytest.mark.parametrize(
    "fields",
    [{}, {"tied": False}, {"qk_norm": True, "head_size": 64}, {"rope_scaling": (1.0, 2.0) * 8, "rope_base": 500.0}],
)
def test_forward_gives_what_the_reference_gives(config: GPTConfig, launcher: Any, fields: dict[str, Any]) -> None:
    config = replace(config, **fields)
    weights, tokens = random_weights(config, seed=5), tokens_of(config, 3, 17)
    logits = GPT(config, weights, launcher, "f32").forward(tokens).numpy()
    exact = reference.float64(config, weights, tokens)
    assert np.abs(logits - exact).max() < 1e-5


@pytest.mark.parametrize("whole", [False, True])
def test_a_cache_gives_what_the_whole_text_gives(
    config: GPTConfig, weights: Weights, launcher: Any, whole: bool
) -> None:
    tokens = tokens_of(config, 2, 14)
    policy = replace(POLICY, unsplit_head=32, spans_per_sm=0.0 if whole else 1000.0)
    model = GPT(config, weights, launcher, "f32", policy=policy)
    cache = KVCache(model, batch=2, positions=15)
    assert cache.layer(0)[0].shape == (2, 15, config.kv_heads, config.head_size)
    assert (model.new_spans(cache) is None) == whole
    model.prefill(tokens[:, :7], cache)
    found = [model.prefill(tokens[:, 7:12], cache), *(model.decode(tokens[:, i], cache) for i in (12, 13))]
    exact = reference.float64(config, weights, tokens)[:, 11:]
    assert np.abs(np.stack([logits.numpy() for logits in found], axis=1) - exact).max() < 1e-5


def test_large_batches_go_through_the_layers_in_chunks(config: GPTConfig, weights: Weights, launcher: Any) -> None:
    tokens = tokens_of(config, 5, 9)
    policy = replace(POLICY, chunk_bytes=2 * 9 * config.ffn * 4, min_chunks=2)
    model = GPT(config, weights, launcher, "f32", policy=policy)
    whole = GPT(config, weights, launcher, "f32", policy=replace(policy, min_chunks=1000))
    before = len(launcher.launches)
    chunked = model.forward(tokens).numpy()
    assert sum(op == "token_embedding" for op, _ in launcher.launches[before:]) == 2
    # numpy may add up in another order for other numbers of rows, and with another number of threads.
    np.testing.assert_allclose(chunked, whole.forward(tokens).numpy(), rtol=1e-5, atol=1e-5)


def test_weights_lie_as_kernels_read_them(config: GPTConfig, weights: Weights) -> None:
    made = device_weights(config, weights, "bf16", 320, folded=False)
    q, k = (weights[f"layers.1.self_attn.{part}_proj.weight"].astype(made["cos"].dtype) for part in "qk")
    joined = made["layers.1.self_attn.qkv"].astype(np.float32)
    assert joined.shape == (192, 192 + 2 * 64)
    assert np.abs(joined[:, :192] - q.T).max() < 1e-2
    assert np.abs(joined[:, 192:256] - k.T).max() < 1e-2
    assert made["embed_tokens.weight"].shape == (320, 192)
    assert made["cos"].shape == (config.n_ctx, config.head_size // 2)


FOLDED = {"rms_linear", "rms_swiglu", "linear_residual_squares"}


@pytest.mark.parametrize(
    ("dtype", "rows", "folded", "squares"),
    [
        ("bf16", 1, None, (6, 1)), ("bf16", 7, None, (6, 64)), ("f16", 33, None, (6, 64)), ("bf16", 33, False, (0, 0)),
        ("f32", 7, None, (0, 0)), ("bf16", 193, None, (0, 0)), ("bf16", 513, None, (1, 576)),
    ],
)  # fmt: skip
def test_norms_of_few_and_of_many_rows_are_part_of_the_products(
    config: GPTConfig, weights: Weights, launcher: Any,
    dtype: str, rows: int, folded: bool | None, squares: tuple[int, int],
) -> None:  # fmt: skip
    model = GPT(config, weights, launcher, dtype, folded=folded)
    tokens = tokens_of(config, rows, 1)
    logits = model.forward(tokens).numpy().astype(np.float64)
    launched = {op for op, _ in launcher.launches}
    assert model.new_workspace(rows, 1).squares.shape == squares
    assert launched & FOLDED == (FOLDED if squares[0] else set())
    assert ("swiglu" in launched) == (not squares[0])
    wanted = reference.float64(config, weights, tokens)
    rounding = np.abs(reference.eager(config, weights.astype(dtype), tokens, dtype=dtype) - wanted).max()
    assert np.abs(logits - wanted).max() < 3 * rounding + 1e-6


def test_gains_are_in_the_weights_of_a_folded_model(config: GPTConfig, weights: Weights) -> None:
    gains = Weights({
        name: np.full_like(tensor, 3.0) if "layernorm" in name else tensor for name, tensor in weights.items()
    })  # fmt: skip
    plain, made = (device_weights(config, gains, "bf16", 320, folded=folded) for folded in (False, True))
    for name in ("self_attn.qkv", "mlp.gate_proj", "mlp.up_proj", "self_attn.o_proj"):
        factor = 1.0 if name == "self_attn.o_proj" else 3.0
        wide, narrow = (both[f"layers.1.{name}"].astype(np.float32) for both in (made, plain))
        assert np.abs(wide - factor * narrow).max() < 0.02 * np.abs(wide).max()
    assert (made["layers.0.input_layernorm.weight"].astype(np.float32) == 1).all()
    assert (plain["layers.0.input_layernorm.weight"].astype(np.float32) == 3).all()


@pytest.mark.parametrize(
    ("fields", "positions", "turns"),
    [({}, 128, True), ({"n_ctx": 512}, 512, True), ({"qk_norm": True}, 128, False), ({"head_size": 32}, 128, True),
     ({"n_head": 18, "kv_heads": 2}, 128, False)],
)  # fmt: skip
def test_the_token_is_turned_by_attention_to_short_spans(
    config: GPTConfig, launcher: Any, fields: dict[str, Any], positions: int, turns: bool
) -> None:
    config = replace(config, **{"head_size": 64, **fields})
    weights, tokens = random_weights(config, seed=5), tokens_of(config, 1, 3)
    model = GPT(config, weights, launcher, "bf16")
    cache = KVCache(model, 1, positions)
    model.prefill(tokens[:, :2], cache)
    found = model.decode(tokens[:, 2], cache).numpy().astype(np.float64)
    launched = [op for op, _ in launcher.launches]
    assert ("rope_decode_attention" in launched) == turns
    assert ("grouped_decode_attention" in launched) == (not turns)
    wanted = reference.float64(config, weights, tokens)
    rounding = np.abs(reference.eager(config, weights.astype("bf16"), tokens, dtype="bf16") - wanted).max()
    assert np.abs(found - wanted[:, 2]).max() < 3 * rounding


@pytest.mark.parametrize(
    ("batch", "fields", "most", "merged"),
    [(1, {}, 2, True), (1, {}, 1, False), (2, {}, 2, False), (1, {"head_size": 32}, 2, False),
     (1, {"qk_norm": True}, 2, True)],
)  # fmt: skip
def test_the_product_behind_attention_merges_few_spans_of_one_row(
    config: GPTConfig, launcher: Any, batch: int, fields: dict[str, Any], most: int, merged: bool
) -> None:
    config = replace(config, **{"head_size": 64, "n_ctx": 256, **fields})
    assert POLICY.fold is not None
    policy = replace(POLICY, fold=replace(POLICY.fold, merged_spans=most))
    weights, tokens = random_weights(config, seed=5), tokens_of(config, batch, 3)
    model = GPT(config, weights, launcher, "bf16", policy=policy)
    cache = KVCache(model, batch, 256)
    model.prefill(tokens[:, :2], cache)
    before = len(launcher.launches)
    found = model.decode(tokens[:, 2], cache).numpy().astype(np.float64)
    launched = [op for op, _ in launcher.launches[before:]]
    assert launched.count("merge_linear_residual_squares") == (config.n_layer if merged else 0)
    assert launched.count("merge_attention") == (0 if merged else config.n_layer)
    wanted = reference.float64(config, weights, tokens)
    rounding = np.abs(reference.eager(config, weights.astype("bf16"), tokens, dtype="bf16") - wanted).max()
    assert np.abs(found - wanted[:, 2]).max() < 3 * rounding


def test_a_product_that_merges_gives_what_two_launches_give(config: GPTConfig, launcher: Any) -> None:
    config = replace(config, head_size=64, n_ctx=256)
    weights, tokens = random_weights(config, seed=5), tokens_of(config, 1, 3)
    assert POLICY.fold is not None
    found = list[Any]()
    for most in (0, 2):
        policy = replace(POLICY, fold=replace(POLICY.fold, merged_spans=most))
        model = GPT(config, weights, launcher, "bf16", policy=policy)
        cache = KVCache(model, 1, 256)
        model.prefill(tokens[:, :2], cache)
        found.append(model.decode(tokens[:, 2], cache).numpy())
    assert (found[0] == found[1]).all()
