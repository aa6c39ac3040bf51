"""A cache in 8-bit floats: what a model computes with it, what it takes, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpt.batches.batching import Batching
from gpt.config import LLAMAS, PRESETS, GPTConfig
from gpt.model import GPT, KVCache
from gpt.parameters.weights import Weights, random_weights
from gpt.passes.kv_cache import Cached, CachedF8
from toolchain.errors import UsageError

MODELS = {"gpt2": PRESETS["nano"], "llama": LLAMAS["nano"], "qwen3": replace(LLAMAS["nano"], qk_norm=True)}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, launcher: Any) -> GPT:
    config = MODELS[request.param]
    return GPT(config, random_weights(config, 4), launcher, "bf16", cache="f8")


def logits_of(model: GPT, tokens: np.ndarray[Any, Any], at: int) -> np.ndarray[Any, Any]:
    """Those after a prompt of `at` tokens, prefilled in two pieces, and after each of the others."""
    cache = KVCache(model, len(tokens))
    model.prefill(tokens[:, : at - 3], cache)
    found = [model.prefill(tokens[:, at - 3 : at], cache)]
    found += [model.decode(tokens[:, place], cache) for place in range(at, tokens.shape[1])]
    return np.stack([each.numpy().astype(np.float64) for each in found], axis=1)


def weights_of(config: GPTConfig) -> Weights:
    """Random ones, with queries, keys and values so large that attention decides what follows."""
    made = dict(random_weights(config, 4))
    for name in made:
        if name.endswith(("c_attn.weight", "q_proj.weight", "k_proj.weight", "v_proj.weight")):
            made[name] = made[name] * np.float32(8)
    return Weights(made)


@pytest.mark.parametrize("name", MODELS)
def test_it_computes_nearly_what_a_whole_cache_gives(name: str, launcher: Any) -> None:
    config = MODELS[name]
    tokens = np.random.default_rng(2).integers(0, config.vocab_size, (2, 14)).astype(np.int32)
    whole, narrow = (GPT(config, weights_of(config), launcher, "bf16", cache=cache) for cache in ("", "f8"))
    wanted = whole.forward(tokens).numpy().astype(np.float64)[:, 9:]
    usual, found = (np.linalg.norm(logits_of(each, tokens, 10) - wanted) for each in (whole, narrow))
    assert usual < found < (0.12 if name == "llama" else 0.06) * np.linalg.norm(wanted)


def test_keys_and_values_are_rounded_where_they_are_kept(model: GPT, launcher: Any) -> None:
    tokens = np.random.default_rng(2).integers(0, model.config.vocab_size, (2, 14)).astype(np.int32)
    logits_of(model, tokens, 10)
    ran, layers = [op for op, _ in launcher.launches], model.config.n_layer
    assert ran.count("grouped_decode_attention_f8") == ran.count("merge_attention") == 4 * layers
    assert ran.count("kv_from_f8") == 2 * layers, "in each of both pieces of the prompt"
    assert sum(op.endswith("append_f8") for op in ran) == 6 * layers
    assert not any(op in ("decode_attention", "grouped_decode_attention", "rope_append", "kv_append") for op in ran)


def test_one_launch_appends_and_attends_where_a_source_has_it(launcher: Any) -> None:
    """With more sequences than multiprocessors want blocks, of heads of 64: else the cache is split."""
    config = replace(PRESETS["nano"], n_head=1)
    tokens = np.random.default_rng(2).integers(0, config.vocab_size, (6, 11)).astype(np.int32)
    launcher.executor.sms = 2
    found = list[np.ndarray[Any, Any]]()
    for lacks in (launcher.lacks, launcher.lacks - {"decode_attention_unsplit_f8"}):
        launcher.lacks = lacks
        launcher.launches.clear()
        found.append(logits_of(GPT(config, weights_of(config), launcher, "bf16", cache="f8"), tokens, 10))
        ran = [op for op, _ in launcher.launches]
        both = ran.count("decode_attention_unsplit_f8"), ran.count("merge_attention")
        assert both == ((0, config.n_layer) if "decode_attention_unsplit_f8" in lacks else (config.n_layer, 0))
    assert np.abs(found[0] - found[1]).max() < 0.02


def test_a_forward_pass_keeps_nothing(model: GPT, launcher: Any) -> None:
    launcher.launches.clear()
    model.forward(np.arange(6, dtype=np.int32)[None])
    assert not any("f8" in op for op, _ in launcher.launches)


def test_it_takes_about_half_the_memory(model: GPT, launcher: Any) -> None:
    whole = GPT(model.config, random_weights(model.config, 4), launcher, "bf16")
    sizes = [KVCache(each, 3, 40).nbytes for each in (model, whole)]
    assert sizes[0] / sizes[1] == 0.5 + 2 / model.config.head_size
    cache = KVCache(model, 3, 40)
    layer = cache.layer(1)
    assert isinstance(layer, CachedF8) and isinstance(KVCache(whole, 3, 40).layer(1), Cached)
    config = model.config
    assert layer.keys.shape == (3, 40, config.kv_heads, config.head_size)
    assert layer.value_scales.shape == (3, config.kv_heads, 40)
    assert layer.until(7).keys.shape[1] == layer.until(7).key_scales.shape[2] == 7
    assert cache.scales is not None
    cache.scales.fill(2.0)
    one = cache.sequence(1).layer(0)
    assert isinstance(one, CachedF8)
    assert (one.key_scales.numpy() == 2).all() and one.key_scales.shape[0] == 1


def test_sequences_of_different_lengths(model: GPT) -> None:
    """Each token has its own position: alone a sequence gives what it gives beside another."""
    tokens = np.random.default_rng(3).integers(0, model.config.vocab_size, (2, 9)).astype(np.int32)
    both = KVCache(model, 2)
    for index, length in enumerate((8, 5)):
        model.prefill(tokens[index : index + 1, :length], both.sequence(index))
    found = model.decode(tokens[[0, 1], [8, 5]], both).numpy()
    for index, length in enumerate((8, 5)):
        alone = KVCache(model, 1)
        model.prefill(tokens[index : index + 1, :length], alone)
        wanted = model.decode(tokens[index, length : length + 1], alone).numpy()
        assert np.abs(found[index].astype(np.float64) - wanted[0].astype(np.float64)).max() < 0.02


@pytest.mark.parametrize(
    ("cache", "dtype", "why"),
    [("f4", "bf16", "no cache 'f4'"), ("f8", "f16", "a cache in f8 is one of a model in bf16, not in f16")],
)
def test_what_a_cache_cannot_be(
    config: GPTConfig, weights: Weights, launcher: Any, cache: str, dtype: str, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        GPT(config, weights, launcher, dtype, cache=cache)


def test_it_has_no_pages(config: GPTConfig, weights: Weights, launcher: Any) -> None:
    with pytest.raises(UsageError, match="a cache in f8 has no pages"):
        Batching(GPT(config, weights, launcher, "bf16", cache="f8"), texts=2, pages=4)
