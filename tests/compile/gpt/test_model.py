"""The model on the real kernels of both sources, on the interpreter, against the float64 reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conformance.ops.compare import compare
from gpt.config import GPTConfig
from gpt.generate import generate
from gpt.model import GPT, KVCache
from gpt.parameters.weights import SHIPPED, load, random_weights
from gpt.reference import forward as reference
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import Launcher, open_executor

pytestmark = [pytest.mark.needs("toolchain"), pytest.mark.parametrize("source", ["mlir", "py"])]

ODD = GPTConfig(n_layer=2, n_head=3, n_embd=96, n_ctx=150, vocab_size=203)  # a multiple of no tile in any size


@pytest.mark.parametrize("dtype", ["f32", "tf32", "f16", "bf16"])
@pytest.mark.parametrize(("batch", "length"), [(1, 1), (3, 7), (2, 37), (1, 150)])  # 150: more than two key tiles
def test_logits_are_within_the_bound(bundle: Bundle, source: str, dtype: str, batch: int, length: int) -> None:
    weights = random_weights(ODD, seed=1).astype(dtype)
    tokens = np.random.default_rng(2).integers(0, ODD.vocab_size, (batch, length)).astype(np.int32)
    logits = GPT(ODD, weights, Launcher(bundle, source, open_executor("cpu")), dtype).forward(tokens)
    exact, rounded = reference.float64(ODD, weights, tokens), reference.eager(ODD, weights, tokens, dtype=dtype)
    compare("forward", dtype, logits.numpy(), exact, rounded)


@pytest.mark.parametrize(("heads", "whole"), [(3, False), (1, False), (1, True)])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_a_cache_gives_what_the_whole_text_gives(
    bundle: Bundle, source: str, dtype: str, heads: int, whole: bool
) -> None:
    """Two prompts into a cache, then one token each, the second sequence after forgetting four of its tokens."""
    config = replace(ODD, n_head=heads, n_embd=96 if heads == 3 else 64)
    weights = random_weights(config, seed=3).astype(dtype)
    tokens = np.random.default_rng(4).integers(0, ODD.vocab_size, (2, 75)).astype(np.int32)
    policy = replace(bundle.policy(None), spans_per_sm=0.0 if whole else 1000.0)
    model = GPT(config, weights, Launcher(bundle, source, open_executor("cpu")), dtype, policy=policy)
    cache = KVCache(model, batch=2, positions=75)
    assert (model.new_spans(cache) is None) == whole
    model.prefill(tokens[:, :70], cache)
    found = [model.prefill(tokens[:, 70:73], cache).numpy(), model.decode(tokens[:, 73], cache).numpy()]
    exact = reference.float64(config, weights, tokens[:, :74])
    rounded = reference.eager(config, weights, tokens[:, :74], dtype=dtype)
    for step, logits in zip((72, 73), found, strict=True):
        compare("forward", dtype, logits, exact[:, step], rounded[:, step])

    cache.lengths[1] = 70
    logits = model.decode(tokens[:, 74], cache).numpy()
    for row, text in enumerate((tokens[:1], np.concatenate([tokens[1:, :70], tokens[1:, 74:]], axis=1))):
        exact = reference.float64(config, weights, text)[0, -1]
        compare("forward", dtype, logits[row], exact, reference.eager(config, weights, text, dtype=dtype)[0, -1])


def test_the_shipped_checkpoint_continues_as_the_reference_does(bundle: Bundle, source: str) -> None:
    config, weights, _ = load(SHIPPED)
    text = list(b"Once upon a time there was")
    model = GPT(config, weights, Launcher(bundle, source, open_executor("cpu")), "f32")
    found = list(generate(model, text, max_new_tokens=16, temperature=0))
    exact = reference.float64(config, weights, np.array([[*text, *found]]))[0, len(text) - 1 : -1]  # (16, V)
    assert found == exact.argmax(axis=-1).tolist()
