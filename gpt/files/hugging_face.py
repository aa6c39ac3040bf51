"""Reads and writes a `config.json` as transformers has it: that of a GPT-2 here, a Llama's in hugging_face_llama.py.
Each key of a GPT-2's is one of these:

- read: the sizes, `layer_norm_epsilon`, `eos_token_id` (also of `generation_config.json`);
- refused by name unless it has no effect: what changes the mathematics, which tokens may follow, or where a text ends;
- without effect here: dropout and other options of training, `dtype` of the file, `use_cache`,
  `reorder_and_upcast_attn` (scores are sums in f32 in any case), and what a caller of `generate` states: temperature,
  top-k, top-p, a penalty, how many tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolchain.errors import UsageError

from ..config import GPTConfig
from . import hugging_face_llama
from .keys import (
    DECODER,
    END,
    check_values,
    ends,
    in_vocabulary,
    json_object,
    refuse_generation,
    refuse_variants,
    spelling,
)

_IS_IT = "is it the config.json of a GPT-2?"
_SIZES = {  # our name of a size, and the keys that have it; transformers takes either
    "n_layer": ("n_layer", "num_hidden_layers"),
    "n_head": ("n_head", "num_attention_heads"),
    "n_embd": ("n_embd", "hidden_size"),
    "n_ctx": ("n_positions", "max_position_embeddings"),
    "vocab_size": ("vocab_size",),
}
_EPS = "layer_norm_epsilon"
# What this model computes, and other values of the same meaning. A key that is not there has the first of them.
_MODEL: Mapping[str, tuple[object, ...]] = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new",),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False, None),
    "tie_word_embeddings": (True,),
    **DECODER,
}


def read_config(row: object, where: str, generation: object = None, generated_where: str = "") -> GPTConfig:
    """The config in `row`, the content of the `config.json` at `where` of a GPT-2, Llama or Qwen3. `generation`: the
    content of the `generation_config.json` at `generated_where`, if there is one; a text ends at the tokens of both.
    Raises UsageError for anything else, and for a variant that is not computed here. It names the key as the file
    does."""
    row = json_object(row, where, _IS_IT)
    generation = {} if generation is None else json_object(generation, generated_where, _IS_IT)
    read = hugging_face_llama.read if row.get("model_type") in hugging_face_llama.MODELS else _read
    found = {*ends(row, where), *ends(generation, generated_where)}
    sizes = read(row, where)
    refuse_generation(row, where)
    refuse_generation(generation, generated_where)
    return GPTConfig(**sizes, end_tokens=in_vocabulary(found, sizes["vocab_size"]))


def _read(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a GPT-2."""
    refuse_variants(row, _MODEL, where, "GPT-2")
    spelled = {name: spelling(row, keys, where, _IS_IT) for name, keys in _SIZES.items()} | {"eps": _EPS}
    sizes: dict[str, Any] = {name: row.get(key, GPTConfig.eps) for name, key in spelled.items()}
    check_values(sizes, ("eps",), spelled, where, _IS_IT)
    width = sizes["n_embd"]
    if (inner := row.get("n_inner")) not in (None, 4 * width):
        raise UsageError(f"{where}: n_inner is {inner!r}; this model has 4 x {spelled['n_embd']}, {4 * width}")
    return sizes


def config_row(config: GPTConfig) -> dict[str, Any]:
    """The `config.json` that `read_config` reads."""
    ends_at = list(config.end_tokens)
    end: dict[str, Any] = {END: ends_at[0] if len(ends_at) == 1 else ends_at} if ends_at else {}
    if config.family == "llama":
        return hugging_face_llama.row(config) | end
    return {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new",
        "n_layer": config.n_layer, "n_head": config.n_head, "n_embd": config.n_embd, "n_positions": config.n_ctx,
        "vocab_size": config.vocab_size, _EPS: config.eps, **end,
    }  # fmt: skip
