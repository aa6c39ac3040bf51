"""Small models of the family llama: each as a config of ours, and as the config.json that transformers has for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpt.config import LLAMAS, GPTConfig
from gpt.rope import llama3_divisors

BASE: dict[str, Any] = {
    "vocab_size": 203, "hidden_size": 192, "intermediate_size": 320, "num_hidden_layers": 2, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu",
}  # fmt: skip
LLAMA3 = {
    "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
}  # fmt: skip
_SMALL = replace(LLAMAS["nano"], vocab_size=203)

CONFIGS: Mapping[str, tuple[GPTConfig, dict[str, Any]]] = {
    "llama": (
        _SMALL,
        {**BASE, "model_type": "llama", "tie_word_embeddings": True,
         "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
    ),
    "llama3": (
        replace(_SMALL, tied=False, rope_base=500.0, rope_scaling=llama3_divisors(500.0, 32, LLAMA3)),
        {**BASE, "model_type": "llama", "tie_word_embeddings": False,
         "rope_parameters": {"rope_type": "llama3", "rope_theta": 500.0, **LLAMA3}},
    ),
    "linear": (
        replace(_SMALL, kv_heads=6, rope_scaling=(4.0,) * 16),
        {**BASE, "model_type": "llama", "tie_word_embeddings": True, "num_key_value_heads": 6,
         "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}},
    ),
    "qwen3": (
        replace(_SMALL, tied=False, qk_norm=True, head_size=64, eps=1e-6, rope_base=1e6),
        {**BASE, "model_type": "qwen3", "tie_word_embeddings": False, "head_dim": 64, "rms_norm_eps": 1e-6,
         "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
    ),
}  # fmt: skip
TOKENS = np.random.default_rng(8).integers(0, 203, (2, 24)).astype(np.int32)
