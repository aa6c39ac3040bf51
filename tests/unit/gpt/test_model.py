from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpt.config import GPTConfig
from gpt.generate import generate
from gpt.model import GPT, KVCache
from gpt.parameters.weights import Weights
from gpt.reference import forward as reference
from toolchain.errors import UsageError

from .conftest import POLICY


@pytest.fixture
def tokens(config: GPTConfig) -> np.ndarray:
    return np.random.default_rng(8).integers(0, config.vocab_size, (2, 11)).astype(np.int32)


@pytest.mark.parametrize("dtype", ["f32", "tf32", "f16", "bf16"])
def test_forward_is_the_references_sequence_of_ops(
    config: GPTConfig, weights: Weights, launcher: Any, tokens: np.ndarray, dtype: str
) -> None:
    logits = GPT(config, weights, launcher, dtype).forward(tokens).numpy()
    wanted = reference.eager(config, weights.astype(dtype), tokens, dtype=dtype)
    allowed = {"f32": 1e-5, "tf32": 2e-3, "f16": 5e-3, "bf16": 5e-2}[dtype]  # other shapes, another order of summation
    assert logits.dtype == wanted.dtype
    assert np.abs(logits.astype(np.float64) - wanted.astype(np.float64)).max() < allowed
    kinds = dict(launcher.launches)
    assert kinds["linear"] == kinds["attention"] == dtype
    assert kinds["layernorm"] == ("f32" if dtype == "tf32" else dtype)


def test_a_prompt_of_many_rows_fills_its_cache_in_chunks(model: GPT, weights: Weights, launcher: Any) -> None:
    tokens = np.random.default_rng(8).integers(0, model.config.vocab_size, (5, 12)).astype(np.int32)
    wanted = model.forward(tokens).numpy()
    policy = replace(POLICY, chunk_bytes=10 * 4 * model.config.n_embd * 4)
    model = GPT(model.config, weights, launcher, "f32", policy=policy)
    cache = KVCache(model, batch=5)
    model.prefill(tokens[:, :5], cache)
    launcher.launches.clear()
    model._workspaces.clear()
    found = model.prefill(tokens[:, 5:11], cache).numpy()
    assert [op for op, _ in launcher.launches].count("kv_append") == 3 * model.config.n_layer
    assert np.abs(found - wanted[:, 10]).max() < 1e-5
    assert np.abs(model.decode(tokens[:, 11], cache).numpy() - wanted[:, 11]).max() < 1e-5


def test_logits_are_the_callers(model: GPT, tokens: np.ndarray) -> None:
    first = model.forward(tokens)
    kept = first.numpy()
    model.forward(tokens[:, ::-1].copy())
    assert np.array_equal(first.numpy(), kept)


def test_prefill_and_decode_continue_as_forward_does(model: GPT, tokens: np.ndarray) -> None:
    wanted = model.forward(tokens).numpy()
    cache = KVCache(model, batch=2, positions=11)
    found = {4: model.prefill(tokens[:, :5], cache).numpy(), 7: model.prefill(tokens[:, 5:8], cache).numpy()}
    for t in range(8, 11):
        found[t] = model.decode(tokens[:, t], cache).numpy()
    assert cache.lengths.tolist() == [11, 11]
    for t, logits in found.items():
        assert np.abs(logits - wanted[:, t]).max() < 1e-4, t


@pytest.mark.parametrize(
    ("batch", "positions", "heads", "spans"),
    [
        (1, 1000, 1, 8), (3, 1000, 1, 2), (3, 513, 1, 2), (3, 200, 1, 2), (5, 100, 1, 1),
        (6, 1000, 1, None), (6, 1000, 2, 2),
    ],
)  # fmt: skip
def test_a_cache_is_split_where_multiprocessors_would_idle(
    config: GPTConfig, weights: Weights, launcher: Any, batch: int, positions: int, heads: int, spans: int | None
) -> None:
    """Two multiprocessors want six blocks; of heads of 32 the cache is never taken whole."""
    long = replace(config, n_ctx=1000, n_head=heads)
    wide = np.zeros((1000, config.n_embd), np.float32)
    launcher.executor.sms = 2
    model = GPT(long, Weights({**dict(weights.items()), "wpe.weight": wide}), launcher, "f32")
    cache = KVCache(model, batch, positions)
    found = model.new_spans(cache)
    assert (found and found[0].shape[2]) == spans
    model.decode(np.zeros(batch, np.int32), cache)
    launched = [op for op, _ in launcher.launches]
    assert ("decode_attention_unsplit" in launched) == (spans is None) == ("merge_attention" not in launched)


def test_sequences_of_different_lengths_decode_together(
    config: GPTConfig, weights: Weights, model: GPT, tokens: np.ndarray
) -> None:
    cache = KVCache(model, batch=2)
    model.prefill(tokens[:, :6], cache)
    cache.lengths[1] = 3  # forget the second sequence's last three
    logits = model.decode(tokens[:, 6], cache).numpy()
    short = np.array([[*tokens[1, :3], tokens[1, 6]]])
    assert np.abs(logits[0] - reference.float64(config, weights, tokens[:1, :7])[0, -1]).max() < 1e-4
    assert np.abs(logits[1] - reference.float64(config, weights, short)[0, -1]).max() < 1e-4
    with pytest.raises(UsageError, match="equally long"):
        model.prefill(tokens[:, :2], cache)


def test_bad_tokens_are_refused_before_any_launch(model: GPT, launcher: Any) -> None:
    n_ctx, vocab = model.config.n_ctx, model.config.vocab_size
    cache = KVCache(model, batch=1, positions=4)
    for use, match in (
        (lambda: model.forward(np.zeros((1, n_ctx + 1), np.int32)), f"{n_ctx + 1} positions"),
        (lambda: model.forward(np.full((1, 2), vocab)), f"token {vocab} is outside"),
        (lambda: model.forward(np.full((1, 2), -1)), "token -1 is outside"),
        (lambda: model.forward(np.zeros((1, 2))), "float64"),
        (lambda: model.forward(np.zeros(3, np.int32)), r"\(B, T\)"),
        (lambda: model.forward(np.zeros((1, 0), np.int32)), "at least one"),
        (lambda: model.prefill(np.zeros((1, 5), np.int32), cache), r"0 \+ 5 positions"),
        (lambda: model.decode(np.zeros(2, np.int32), cache), "2 sequences for a cache of 1"),
        (lambda: KVCache(model, batch=1, positions=n_ctx + 1), "at most"),
        (lambda: generate(model, [1] * n_ctx, max_new_tokens=1), "context"),
        (lambda: generate(model, [], max_new_tokens=1), "empty"),
        (lambda: generate(model, np.ones((2, 3), int), max_new_tokens=1), r"tokens of shape \[2, 3\] are several"),
        (lambda: generate(model, [1], max_new_tokens=1, seed=-1), "seed is -1"),
        (lambda: generate(model, [1], max_new_tokens=1, temperature=-1), "temperature"),
        (lambda: generate(model, [1], max_new_tokens=1, top_k=0), "top_k"),
        (lambda: generate(model, [1], max_new_tokens=1, top_p=0.0), "top_p"),
        (lambda: generate(model, [1], max_new_tokens=-1), "negative"),
    ):
        with pytest.raises(UsageError, match=match):
            use()
    assert launcher.launches == []
