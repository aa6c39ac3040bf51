"""Models in GGUF files: keys and tensors that are read, and those that are refused."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gpt.files.gguf import read_header
from gpt.files.gguf_model import halves, read_config
from gpt.parameters.weights import Weights, load, random_weights
from toolchain.errors import UsageError

from ..gguf_bytes import plain, write
from ..llamas import CONFIGS, gguf_keys, gguf_tensors

pytestmark = pytest.mark.needs("gguf")

CONFIG = replace(CONFIGS["llama"][0], eps=0.5**16, rope_base=2.0**13)  # numbers that f32 holds
KEYS = {
    **gguf_keys(CONFIG, "llama"), "llama.vocab_size": 203, "llama.rope.dimension_count": 32,
    "tokenizer.ggml.eos_token_id": 7, "tokenizer.ggml.eot_token_id": 9, "general.type": "model",
    "general.quantization_version": 2,
}  # fmt: skip
WEIGHTS = random_weights(CONFIG, 8)
TENSORS = {name: plain(tensor) for name, tensor in gguf_tensors(CONFIG, WEIGHTS, "llama").items()}


def file(path: Path, change: dict[str, Any], tensors: Any = TENSORS) -> Path:
    keys = {key: value for key, value in (KEYS | change).items() if value is not ...}
    return write(path / "a.gguf", keys, {name: tensor for name, tensor in tensors.items() if tensor is not ...})


def test_a_llama(tmp_path: Path) -> None:
    path = file(tmp_path, {})
    config, weights, place = load(path)
    assert (config, place) == (replace(CONFIG, end_tokens=(7, 9)), path)
    assert weights.keys() == WEIGHTS.keys()
    assert all(np.array_equal(weights[name], WEIGHTS[name]) for name in WEIGHTS)
    assert load(str(path))[0] == config


def test_a_qwen3_whose_heads_lie_as_ours(tmp_path: Path) -> None:
    config = replace(CONFIGS["qwen3"][0], eps=0.5**20, rope_base=2.0**20)
    weights = random_weights(config, 8)
    tensors = {name: plain(tensor) for name, tensor in gguf_tensors(config, weights, "qwen3").items()}
    found, read, _ = load(write(tmp_path / "a.gguf", gguf_keys(config, "qwen3"), tensors))
    assert found == config and all(np.array_equal(read[name], weights[name]) for name in weights)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_weights_are_read_in_the_dtype_that_is_wanted(tmp_path: Path, dtype: str) -> None:
    found = load(file(tmp_path, {}), dtype)[1]
    wanted = WEIGHTS.astype(dtype)
    assert all(found[name].dtype == wanted[name].dtype and np.array_equal(found[name], wanted[name]) for name in wanted)


def test_a_weight_outside_of_the_dtype_and_one_that_is_none(tmp_path: Path) -> None:
    for value, dtype, said in (
        (1e5, "f16", "has a weight outside of f16's range"),
        (np.nan, "bf16", "holds NaN or inf"),
    ):
        tensors = TENSORS | {"output_norm.weight": plain(np.full(192, value, np.float32))}
        with pytest.raises(UsageError, match=rf"a\.gguf: (output_)?norm\.weight {said}"):
            load(file(tmp_path, {}, tensors), dtype)


def test_memory_while_loading(tmp_path: Path) -> None:
    config = replace(CONFIG, vocab_size=20000)
    weights = {name: np.zeros((20000, 192), np.float32) if "embed" in name else WEIGHTS[name] for name in WEIGHTS}
    tensors = {name: plain(tensor) for name, tensor in gguf_tensors(config, Weights(weights), "llama").items()}
    embedding = np.zeros((20000, 192 // 32 * 34), np.uint8)
    tensors["token_embd.weight"] = ("Q8_0", (20000, 192), embedding.tobytes())
    path = write(tmp_path / "a.gguf", KEYS | {"llama.vocab_size": 20000}, tensors)
    tracemalloc.start()
    try:
        found = load(path, "bf16")[1]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found["embed_tokens.weight"].dtype == ml_dtypes.bfloat16
    # What is converted at once has a fixed size, larger than these few weights.
    assert most < 1.3 * sum(tensor.nbytes for tensor in found.values()) + 80e6


@pytest.mark.parametrize(
    ("change", "divisors"),
    [
        ({}, None),
        ({"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 4.0}, None),
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}, (4.0,) * 16),
        ({"llama.rope.scaling.factor": 4.0}, (4.0,) * 16),
    ],
)
def test_scaled_positions(tmp_path: Path, change: dict[str, Any], divisors: Any) -> None:
    assert load(file(tmp_path, change))[0].rope_scaling == divisors
    each = np.arange(1, 17, dtype=np.float32)
    found = load(file(tmp_path, change, {"rope_freqs.weight": plain(each), **TENSORS}))
    assert found[0].rope_scaling == tuple(float(x) for x in each * (1 if divisors is None else 4))
    assert found[1].keys() == WEIGHTS.keys()


def test_sizes_that_need_not_be_there(tmp_path: Path) -> None:
    gone = dict.fromkeys(("llama.attention.head_count_kv", "llama.attention.key_length", "llama.rope.freq_base"), ...)
    found = read_config(read_header(file(tmp_path, gone)))
    assert (found.kv_heads, found.head_size, found.rope_base) == (6, 32, 10000.0)


@pytest.mark.parametrize(
    ("change", "tensors", "said"),
    [
        ({"general.architecture": "gemma3"}, {}, "general.architecture is 'gemma3'; computed here are llama, qwen3"),
        ({"general.architecture": ...}, {}, "general.architecture is None"),
        ({"general.type": "adapter"}, {}, "general.type is 'adapter'; here it is 'model'"),
        ({"general.quantization_version": 1}, {}, "general.quantization_version is 1; here it is 2"),
        ({"split.count": 3}, {}, "split.count is 3; here it is 0 or 1"),
        ({"llama.block_count": ...}, {}, "it has no llama.block_count"),
        ({"llama.block_count": 0}, {}, "llama.block_count is 0"),
        ({"llama.block_count": "2"}, {}, "llama.block_count is '2', which is not an integer"),
        ({"llama.block_count": 3}, {}, "9 tensors are missing: layers.2"),
        ({"llama.feed_forward_length": 10**6}, {}, r"layers.0.mlp.gate_proj.weight has shape \(320, 192\)"),
        ({"llama.attention.head_count_kv": np.array([2, 2], np.int32)}, {}, r"head_count_kv is array\(\[2, 2\]"),
        ({"llama.attention.head_count_kv": 4}, {}, "head_count 6 is not a multiple of llama.attention.head_count_kv 4"),
        ({"llama.attention.value_length": 64}, {}, "value_length is 64; here it is the head size, 32"),
        ({"llama.rope.dimension_count": 16}, {}, "dimension_count is 16; here it is the head size, 32"),
        ({"llama.vocab_size": 204}, {}, "llama.vocab_size is not the 203 rows"),
        ({"llama.rope.scaling.type": "yarn"}, {}, "type is 'yarn'; here it is 'none' or 'linear'"),
        ({"llama.rope.scaling.factor": -1.0}, {}, "factor is -1.0, which is not a number above 0"),
        ({"llama.expert_count": 8}, {}, "llama.expert_count is 8; here it is 0"),
        ({"llama.attention.sliding_window": 4096}, {}, "sliding_window is 4096, which is not computed here"),
        ({"llama.logit_scale": 0.5}, {}, "llama.logit_scale is 0.5, which is not computed here"),
        ({}, {"token_embd.weight": ...}, "it has no tensor token_embd.weight"),
        ({}, {"output_norm.weight": ...}, "1 tensors are missing: norm.weight"),
        ({}, {"blk.0.attn_q.bias": plain(np.zeros(192))}, "it has a tensor blk.0.attn_q.bias, which this model"),
        ({}, {"blk.2.attn_norm.weight": plain(np.zeros(192))}, "does not have: layers.2.input_layernorm.weight"),
        ({}, {"blk.0.attn_q.weight": plain(np.zeros(192))}, "attn_q.weight has shape .*not rows of heads of 32"),
        ({}, {"blk.0.attn_q.weight": plain(np.zeros((192, 32)))}, r"q_proj.weight has shape \(192, 32\)"),
        ({}, {"rope_freqs.weight": plain(np.ones(8))}, r"rope_freqs.weight has shape \(8,\), wants \(16,\)"),
        ({}, {"rope_freqs.weight": plain(np.zeros(16))}, "rope_freqs.weight has a number that is not above 0"),
    ],
)  # fmt: skip
def test_what_is_not_computed_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], tensors: Any, said: str
) -> None:
    with pytest.raises(UsageError, match=rf"a\.gguf: .*{said}") as raised:
        load(file(tmp_path, change, TENSORS | tensors))
    assert "\n" not in raised.value.args[0]


def test_pairs_of_neighbours_become_pairs_of_halves() -> None:
    rows = np.array([0, 2, 1, 3, 10, 12, 11, 13])[:, None] * np.ones(3)  # two heads of four: pairs (0, 2), (1, 3)
    assert halves(rows, 4, "x")[:, 0].tolist() == [0, 1, 2, 3, 10, 11, 12, 13]
