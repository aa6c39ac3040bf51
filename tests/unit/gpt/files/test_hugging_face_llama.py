"""The keys of the config.json of a Llama and of a Qwen3: read, refused, or without effect."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpt.config import LLAMAS, GPTConfig
from gpt.files.hugging_face import config_row, read_config
from gpt.rope import llama3_divisors
from toolchain.errors import UsageError

from ..llamas import BASE, CONFIGS, LLAMA3

# What SmolLM2-135M-Instruct has on the hub, with all that has no effect on a text here
SMOLLM2: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 1,
    "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664,
    "intermediate_size": 1536, "is_llama_config": True, "max_position_embeddings": 8192, "mlp_bias": False,
    "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
    "pad_token_id": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": False, "rope_scaling": None,
    "rope_theta": 100000, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}, "transformers_version": "4.42.3",
    "use_cache": True, "vocab_size": 49152,
}  # fmt: skip
LLAMA = CONFIGS["llama"][1]


def read(change: dict[str, Any], base: dict[str, Any] = LLAMA) -> GPTConfig:
    return read_config({k: v for k, v in (base | change).items() if v is not ...}, "here/config.json")


def test_smollm2() -> None:
    assert read_config(SMOLLM2, "here") == replace(LLAMAS["smollm2"], end_tokens=(2,))


@pytest.mark.parametrize("name", CONFIGS)
def test_configs_of_transformers_5(name: str) -> None:
    config, row = CONFIGS[name]
    assert read_config(row, "here") == config


@pytest.mark.parametrize("name", ["llama", "linear", "qwen3"])
def test_what_is_written_is_what_was_read(name: str) -> None:
    config = replace(CONFIGS[name][0], end_tokens=(7, 8))
    assert read_config(json.loads(json.dumps(config_row(config))), "here") == config


def test_divisors_that_no_key_states() -> None:
    with pytest.raises(UsageError, match="cannot state"):
        config_row(CONFIGS["llama3"][0])


def test_keys_that_are_not_there_have_transformers_values() -> None:
    row = {key: BASE[key] for key in BASE if key not in ("num_key_value_heads", "rms_norm_eps", "hidden_act")}
    found = read_config({**row, "model_type": "llama"}, "here")
    assert (found.kv_heads, found.head_size, found.eps, found.rope_base, found.tied) == (6, 32, 1e-6, 1e4, False)
    found = read_config({**row, "model_type": "qwen3", "num_attention_heads": 32}, "here")
    assert (found.kv_heads, found.head_size, found.qk_norm) == (32, 128, True)


@pytest.mark.parametrize(
    ("scaling", "divisors"),
    [
        (None, None),
        ({"rope_type": "default"}, None),
        ({"type": "linear", "factor": 2}, (2.0,) * 16),
        ({"rope_type": "llama3", **LLAMA3}, llama3_divisors(500.0, 32, LLAMA3)),
    ],
)
def test_rotary_positions_as_files_before_transformers_5_state_them(scaling: Any, divisors: Any) -> None:
    found = read({"rope_parameters": ..., "rope_scaling": scaling, "rope_theta": 500.0})
    assert (found.rope_base, found.rope_scaling) == (500.0, divisors)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_act", "gelu"),
        ("attention_bias", True),
        ("mlp_bias", True),
        ("rope_interleaved", True),
        ("partial_rotary_factor", 0.5),
        ("pruned_heads", {"0": [1]}),
        ("quantization_config", {"quant_method": "gptq", "bits": 4}),
        ("is_causal", False),
        ("auto_map", {"AutoModelForCausalLM": "modeling.Own"}),
    ],
)
def test_another_mathematics_is_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(UsageError) as raised:
        read({key: value})
    assert str(raised.value).startswith(f"here/config.json: {key} is {value!r}; this model is the Llama with")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "mistral"}, "model_type is 'mistral'"),
        ({"hidden_size": ...}, "it has no hidden_size"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True, which is not an integer"),
        ({"num_key_value_heads": 4}, "num_attention_heads 6 is not a multiple of num_key_value_heads 4"),
        ({"num_key_value_heads": "2"}, "num_key_value_heads is '2', which is not an integer"),
        ({"head_dim": 48}, "head_dim is 48; attention takes 32, 64, 128"),
        ({"intermediate_size": 0}, "intermediate_size is 0"),
        ({"rms_norm_eps": "x"}, "rms_norm_eps is 'x', which is not a number"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes', which is neither true nor false"),
        ({"rope_parameters": 3}, "rope_parameters is 3, which is not an object"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "rope_parameters is of the kind 'yarn'"),
        ({"rope_parameters": {"rope_type": ["linear"]}}, "rope_parameters is of the kind ['linear']"),
        ({"rope_parameters": {"rope_type": "linear"}}, "rope_parameters has factor None, which is not a number"),
        ({"rope_parameters": {"rope_type": "linear", "factor": 0}}, "rope_parameters has factor 0"),
        ({"rope_parameters": {"rope_theta": "x"}}, "rope_theta is 'x', which is not a number"),
        ({"rope_parameters": {"rope_theta": 0}}, "rope_theta is 0: it must be above 0"),
        ({"rope_theta": 5.0}, "rope_theta is 5.0 and 10000.0"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "rope_parameters has the partial_rotary_factor 0.5"),
        ({"rope_parameters": {"attention_factor": 1.2}}, "rope_parameters has attention_factor, which the kind"),
        ({"rope_parameters": {"full_attention": {}}}, "rope_parameters has full_attention"),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling and rope_parameters are two that differ"),
        ({"rope_parameters": {"rope_type": "llama3", **LLAMA3, "high_freq_factor": 1}}, "rope_parameters has a low"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types is ['full_attention', 'sliding"),
        ({"layer_types": ["full_attention"]}, "layer_types is ['full_attention']"),
        ({"layer_types": "full_attention"}, "layer_types is 'full_attention'"),
        ({"min_length": 10}, "min_length is 10, which texts do not follow here"),
        ({"eos_token_id": "x"}, "eos_token_id is 'x'"),
    ],
)  # fmt: skip
def test_a_value_is_named_as_the_file_has_it(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(change)
    assert str(raised.value).startswith(f"here/config.json: {said}")


def test_a_window_that_slides_or_not() -> None:
    row = CONFIGS["qwen3"][1]
    full = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
    assert read({**full, "layer_types": ["full_attention"] * 2}, row) == CONFIGS["qwen3"][0]
    with pytest.raises(UsageError, match="use_sliding_window is True; this model is the Qwen3 with False"):
        read({"use_sliding_window": True}, row)
