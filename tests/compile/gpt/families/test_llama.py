"""Llama's family on the real kernels of both sources, on the interpreter, against the float64 reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conformance.ops.compare import compare
from gpt.config import LLAMAS, GPTConfig
from gpt.model import GPT, KVCache
from gpt.parameters.weights import random_weights
from gpt.reference import forward as reference
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import Launcher, open_executor

pytestmark = [pytest.mark.needs("toolchain"), pytest.mark.parametrize("source", ["mlir", "py"])]

NANO = LLAMAS["nano"]
QWEN = replace(NANO, n_layer=1, n_embd=96, n_head=4, head_size=64, ffn=200, qk_norm=True, tied=False)  # of no alignment


@pytest.mark.parametrize(
    ("config", "dtype", "batch", "length"),
    [(NANO, "bf16", 2, 17), (QWEN, "f16", 3, 7), (QWEN, "tf32", 1, 70)],
)
def test_logits_are_within_the_bound(
    bundle: Bundle, source: str, config: GPTConfig, dtype: str, batch: int, length: int
) -> None:
    weights = random_weights(config, seed=1).astype(dtype)
    tokens = np.random.default_rng(2).integers(0, config.vocab_size, (batch, length)).astype(np.int32)
    logits = GPT(config, weights, Launcher(bundle, source, open_executor("cpu")), dtype).forward(tokens)
    exact, rounded = reference.float64(config, weights, tokens), reference.eager(config, weights, tokens, dtype=dtype)
    compare("forward", dtype, logits.numpy(), exact, rounded)


@pytest.mark.parametrize(("dtype", "whole", "batch"), [("bf16", False, 2), ("bf16", False, 1), ("f32", True, 2)])
def test_a_cache_gives_what_the_whole_text_gives(
    bundle: Bundle, source: str, dtype: str, whole: bool, batch: int
) -> None:
    """Prompts into a cache, then one token each; the cache in spans, of one text merged by a product, or whole."""
    config = replace(NANO, n_layer=1, n_head=3, kv_heads=1, head_size=64, n_ctx=256)
    weights = random_weights(config, seed=3).astype(dtype)
    tokens = np.random.default_rng(4).integers(0, config.vocab_size, (batch, 75)).astype(np.int32)
    policy = replace(bundle.policy("sm_90" if batch == 1 else None), spans_per_sm=0.0 if whole else 1000.0)
    model = GPT(config, weights, Launcher(bundle, source, open_executor("cpu")), dtype, policy=policy)
    cache = KVCache(model, batch=batch, positions=256)
    assert (model.new_spans(cache) is None) == whole
    model.prefill(tokens[:, :70], cache)
    found = [model.prefill(tokens[:, 70:73], cache).numpy(), model.decode(tokens[:, 73], cache).numpy()]
    exact = reference.float64(config, weights, tokens[:, :74])
    rounded = reference.eager(config, weights, tokens[:, :74], dtype=dtype)
    for step, logits in zip((72, 73), found, strict=True):
        compare("forward", dtype, logits, exact[:, step], rounded[:, step])
