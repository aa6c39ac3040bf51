"""The keys of a checkpoint's config.json: read, refused, or without effect."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpt.config import PRESETS, GPTConfig
from gpt.files.hugging_face import config_row, read_config
from toolchain.errors import UsageError

NANO = PRESETS["nano"]

# What transformers writes for GPT-2, with all that has no effect on a text here
GPT2: dict[str, Any] = {
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
    "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_inner": None, "n_layer": 12,
    "n_positions": 1024, "reorder_and_upcast_attn": True, "resid_pdrop": 0.1, "scale_attn_by_inverse_layer_idx": False,
    "scale_attn_weights": True, "summary_type": "cls_index", "task_specific_params": {
        "text-generation": {"do_sample": True, "max_length": 50}
    }, "torch_dtype": "float32", "dtype": "float16", "transformers_version": "5.0", "use_cache": True,
    "vocab_size": 50257, "is_decoder": True, "chunk_size_feed_forward": 8, "pad_token_id": 50256, "pruned_heads": {},
    "quantization_config": None, "min_length": 0, "max_length": 20, "num_beams": 1, "bad_words_ids": None,
    "temperature": 0.6, "top_k": 50, "top_p": 0.9, "do_sample": True, "repetition_penalty": 1.2, "typical_p": 1.0,
    "suppress_tokens": None, "forced_eos_token_id": None, "no_repeat_ngram_size": 0,
}  # fmt: skip


def read(change: dict[str, Any], generation: object = None) -> GPTConfig:
    return read_config(config_row(NANO) | change, "here/config.json", generation, "here/generation_config.json")


def test_a_config_of_transformers() -> None:
    assert read_config(GPT2, "here") == replace(PRESETS["gpt2"], end_tokens=(50256,))


@pytest.mark.parametrize("config", [NANO, replace(NANO, eps=1e-3, end_tokens=(7,)), replace(NANO, end_tokens=(7, 8))])
def test_what_is_written_is_what_was_read(config: GPTConfig) -> None:
    assert read_config(json.loads(json.dumps(config_row(config))), "here") == config


@pytest.mark.parametrize(
    ("given", "generation", "ends"),
    [
        (32, None, (32,)),
        ([256, 32], None, (32, 256)),
        ([], None, ()),
        (None, None, ()),
        (0, None, (0,)),
        (50256, None, ()),  # transformers' own default, whatever the vocabulary: never drawn
        (-1, None, ()),
        (32, {"eos_token_id": [1, 32]}, (1, 32)),
        (None, {"eos_token_id": 5}, (5,)),
        (32, {}, (32,)),
    ],
)
def test_tokens_that_end_a_text(given: object, generation: object, ends: tuple[int, ...]) -> None:
    assert read({"eos_token_id": given}, generation).end_tokens == ends


@pytest.mark.parametrize("bad", [True, "32", 32.5, {"a": 1}, [32, True], ["<|endoftext|>"]])
def test_an_end_that_is_no_token(bad: object) -> None:
    for change, generation, file in (
        ({"eos_token_id": bad}, None, "config"),
        ({}, {"eos_token_id": bad}, "generation_config"),
    ):
        with pytest.raises(UsageError, match=rf"here/{file}\.json: eos_token_id is .*neither a token nor a list"):
            read(change, generation)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "mamba"),
        ("activation_function", "relu"),
        ("scale_attn_weights", False),
        ("scale_attn_by_inverse_layer_idx", True),
        ("tie_word_embeddings", False),
        ("add_cross_attention", True),
        ("is_encoder_decoder", True),
        ("is_causal", False),
        ("pruned_heads", {"0": [1]}),
        ("quantization_config", {"quant_method": "gptq", "bits": 4}),
        ("quantization_config", {}),
        ("quantization", {"group_size": 64, "bits": 4}),
        ("auto_map", {"AutoModelForCausalLM": "modeling.Own"}),
        ("n_inner", 100),
    ],
)
def test_another_mathematics_is_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(UsageError) as raised:
        read({key: value})
    assert str(raised.value).startswith(f"here/config.json: {key} is {value!r}; this model ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("min_length", 10),
        ("min_new_tokens", 5),
        ("forced_bos_token_id", 0),
        ("forced_eos_token_id", 32),
        ("suppress_tokens", [32]),
        ("begin_suppress_tokens", [32]),
        ("bad_words_ids", [[32]]),
        ("sequence_bias", [[[32], -10.0]]),
        ("exponential_decay_length_penalty", [5, 1.5]),
        ("no_repeat_ngram_size", 3),
        ("stop_strings", ["\n"]),
        ("num_beams", 4),
        ("min_p", 0.1),
        ("typical_p", 0.9),
    ],
)
def test_another_way_to_go_on_is_refused_by_name_in_either_file(key: str, value: object) -> None:
    for change, generation, file in (({key: value}, None, "config"), ({}, {key: value}, "generation_config")):
        with pytest.raises(UsageError) as raised:
            read(change, generation)
        assert str(raised.value).startswith(f"here/{file}.json: {key} is {value!r}, which texts do not follow here")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_layer": True}, "n_layer is True, which is not an integer"),
        ({"n_layer": None}, "n_layer is None, which is not an integer"),
        ({"n_embd": "64"}, "n_embd is '64', which is not an integer"),
        ({"n_embd": {"a": 1}, "n_inner": 4}, "n_embd is {'a': 1}, which is not an integer"),
        ({"n_positions": 0}, "n_positions is 0: it must be from 1 to 2147483647"),
        ({"n_layer": 10**18}, f"n_layer is {10**18}: it must be from 1 to 4096"),
        ({"n_head": 3}, "n_embd 64 with n_head 3 is a head size of 21.3333; attention takes 32, 64, 128"),
        ({"layer_norm_epsilon": True}, "layer_norm_epsilon is True, which is not a number"),
        ({"layer_norm_epsilon": "x"}, "layer_norm_epsilon is 'x', which is not a number"),
        ({"layer_norm_epsilon": 2}, "layer_norm_epsilon is 2: it must be between 0 and 1"),
        ({"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon is nan: it must be between 0 and 1"),
        ({"num_attention_heads": 1}, "n_head 2 and num_attention_heads 1 are two values of one size"),
        ({"quantization_config": {"modules": ["x" * 200]}}, "quantization_config is {'modules': ['xxx"),
    ],
)
def test_a_value_is_named_as_the_file_has_it(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(change)
    assert str(raised.value).startswith(f"here/config.json: {said}")
    assert len(str(raised.value)) < 220


def test_the_other_name_of_a_size() -> None:
    row = config_row(NANO)
    row["max_position_embeddings"], row["num_attention_heads"] = row.pop("n_positions"), row["n_head"]
    assert read_config(row, "here") == NANO
    with pytest.raises(UsageError, match="here: max_position_embeddings is 0: it must be"):
        read_config(row | {"max_position_embeddings": 0}, "here")
    del row["max_position_embeddings"]
    with pytest.raises(UsageError, match=r"here: it has no n_positions\n  next: is it the config\.json"):
        read_config(row, "here")


@pytest.mark.parametrize("row", [[], None, "gpt2", 3])
def test_no_object(row: object) -> None:
    with pytest.raises(UsageError, match=r"^here does not hold a JSON object"):
        read_config(row, "here")
    if row is not None:
        with pytest.raises(UsageError, match=r"^here/generation_config\.json does not hold a JSON object"):
            read({}, row)
