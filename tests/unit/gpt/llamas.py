"""Small models of the family llama: each as a config of ours, and as the config.json that transformers has for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def gguf_keys(config: GPTConfig, kind: str) -> dict[str, Any]:
    """The keys of a GGUF file of a model, but for its tokenizer."""
    sizes = {
        "block_count": config.n_layer, "context_length": config.n_ctx, "embedding_length": config.n_embd,
        "feed_forward_length": config.ffn, "attention.head_count": config.n_head,
        "attention.head_count_kv": config.kv_heads, "attention.key_length": config.head_size,
        "attention.layer_norm_rms_epsilon": config.eps, "rope.freq_base": config.rope_base,
    }  # fmt: skip
    return {"general.architecture": kind, **{f"{kind}.{key}": value for key, value in sizes.items()}}


def gguf_tensors(config: GPTConfig, weights: Mapping[str, NDArray[Any]], kind: str) -> dict[str, NDArray[Any]]:
    """Its tensors by ggml's names, and as ggml has them: pairs of a Llama's heads are neighbours."""
    names = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
    parts = {
        "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
        "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    }  # fmt: skip
    names |= {
        f"layers.{i}.{ours}": f"blk.{i}.{theirs}" for i in range(config.n_layer) for ours, theirs in parts.items()
    }
    found: dict[str, NDArray[Any]] = {}
    for full, tensor in weights.items():
        name = full.removesuffix(".weight")
        if kind == "llama" and name.endswith(("q_proj", "k_proj")):
            half = config.head_size // 2
            firsts = range(0, len(tensor), config.head_size)
            tensor = tensor[[first + i + part for first in firsts for i in range(half) for part in (0, half)]]
        found[f"{names[name]}.weight"] = tensor
    return found
