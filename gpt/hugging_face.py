"""Reads and writes the `config.json` of a GPT-2 as transformers has it. Each of its keys is one of these:

- read: the sizes, `layer_norm_epsilon`, `eos_token_id` (also of `generation_config.json`);
- refused by name unless it has no effect: what changes the mathematics, which tokens may follow, or where a text ends;
- without effect here: dropout and other options of training, `dtype` of the file, `use_cache`,
  `reorder_and_upcast_attn` (scores are sums in f32 in any case), and what a caller of `generate` states: temperature,
  top-k, top-p, a penalty, how many tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolchain.errors import UsageError
from toolchain.tables import is_integer

from .config import GPTConfig, check_sizes

_IS_IT = "is it the config.json of a GPT-2?"
_SIZES = {  # our name of a size, and the keys that have it; transformers takes either
    "n_layer": ("n_layer", "num_hidden_layers"),
    "n_head": ("n_head", "num_attention_heads"),
    "n_embd": ("n_embd", "hidden_size"),
    "n_ctx": ("n_positions", "max_position_embeddings"),
    "vocab_size": ("vocab_size",),
}
_EPS = "layer_norm_epsilon"
_END = "eos_token_id"
# What this model computes, and other values of the same meaning. A key that is not there has the first of them.
_MODEL: Mapping[str, tuple[object, ...]] = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new",),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False, None),
    "tie_word_embeddings": (True,),
    "is_causal": (True,),
    "add_cross_attention": (False, None),
    "is_encoder_decoder": (False, None),
    "pruned_heads": (None, {}),
    "auto_map": (None, {}),  # a model's own code
    "quantization_config": (None,),
    "compression_config": (None,),  # an older name of it
    "quantization": (None,),  # MLX's
}
# The same for how a text goes on. Older checkpoints have these in their config.json.
_GENERATION: Mapping[str, tuple[object, ...]] = {
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "max_time": (None,),
    "stop_strings": (None, [], ""),
    "forced_bos_token_id": (None,),
    "forced_eos_token_id": (None,),
    "forced_decoder_ids": (None, []),
    "exponential_decay_length_penalty": (None,),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
    "bad_words_ids": (None, []),
    "force_words_ids": (None, []),
    "constraints": (None, []),
    "sequence_bias": (None, {}, []),
    "no_repeat_ngram_size": (None, 0),
    "encoder_no_repeat_ngram_size": (None, 0),
    "encoder_repetition_penalty": (None, 1),
    "guidance_scale": (None, 1),
    "watermarking_config": (None,),
    "dola_layers": (None,),
    "num_beams": (None, 1),
    "num_beam_groups": (None, 1),
    "diversity_penalty": (None, 0),
    "penalty_alpha": (None, 0),
    "typical_p": (None, 1),
    "min_p": (None, 0),
    "top_h": (None,),
    "epsilon_cutoff": (None, 0),
    "eta_cutoff": (None, 0),
    "token_healing": (None, False),
}


def read_config(row: object, where: str, generation: object = None, generated_where: str = "") -> GPTConfig:
    """The config in `row`, the content of a GPT-2's `config.json` at `where`. `generation`: the content of the
    `generation_config.json` at `generated_where`, if there is one; a text ends at the tokens of both. Raises UsageError
    for anything else, and for a variant of GPT-2 that is not computed here. It names the key as the file does."""
    row, generation = _keys(row, where), {} if generation is None else _keys(generation, generated_where)
    for key, value in row.items():
        if value not in _MODEL.get(key, (value,)):
            usual = _MODEL[key][0]
            raise UsageError(
                f"{where}: {key} is {_shown(value)}; this model is the GPT-2 "
                f"{'without it' if usual is None else f'with {usual!r}'}"
            )
    for keys, file in ((row, where), (generation, generated_where)):
        for key, value in keys.items():
            if value not in _GENERATION.get(key, (value,)):
                raise UsageError(
                    f"{file}: {key} is {_shown(value)}, which texts do not follow here",
                    hint="texts go on without it if you delete this key",
                )
    spelled = {name: _key(row, keys, where) for name, keys in _SIZES.items()} | {"eps": _EPS}
    sizes: dict[str, Any] = {name: row.get(key, GPTConfig.eps) for name, key in spelled.items()}
    _check_types(sizes, spelled, where)
    try:
        check_sizes(sizes, spelled)
    except UsageError as error:
        raise UsageError(f"{where}: {error.args[0]}") from error
    width = sizes["n_embd"]
    if (inner := row.get("n_inner")) not in (None, 4 * width):
        raise UsageError(f"{where}: n_inner is {inner!r}; this model has 4 x {spelled['n_embd']}, {4 * width}")
    ends = {*_ends(row, where), *_ends(generation, generated_where)}
    # Files of models with few tokens often have GPT-2's own 50256: a token that is not there ends nothing.
    return GPTConfig(**sizes, end_tokens=tuple(sorted(token for token in ends if 0 <= token < sizes["vocab_size"])))


def config_row(config: GPTConfig) -> dict[str, Any]:
    """The `config.json` that `read_config` reads."""
    ends = list(config.end_tokens)
    return {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new",
        "n_layer": config.n_layer, "n_head": config.n_head, "n_embd": config.n_embd, "n_positions": config.n_ctx,
        "vocab_size": config.vocab_size, _EPS: config.eps,
        **({_END: ends[0] if len(ends) == 1 else ends} if ends else {}),
    }  # fmt: skip


def _keys(row: object, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise UsageError(f"{where} does not hold a JSON object", hint=_IS_IT)
    return cast("dict[str, Any]", row)


def _key(row: Mapping[str, Any], keys: tuple[str, ...], where: str) -> str:
    """Which of these keys the file has."""
    there = [key for key in keys if key in row]
    if not there:
        raise UsageError(f"{where}: it has no {keys[0]}", hint=_IS_IT)
    if any(row[key] != row[there[0]] for key in there):
        both = " and ".join(f"{key} {_shown(row[key])}" for key in there)
        raise UsageError(f"{where}: {both} are two values of one size")
    return there[0]


def _check_types(sizes: Mapping[str, Any], spelled: Mapping[str, str], where: str) -> None:
    for name in _SIZES:
        if not is_integer(sizes[name]):
            raise UsageError(f"{where}: {spelled[name]} is {_shown(sizes[name])}, which is not an integer", hint=_IS_IT)
    if isinstance(sizes["eps"], bool) or not isinstance(sizes["eps"], int | float):
        raise UsageError(f"{where}: {_EPS} is {_shown(sizes['eps'])}, which is not a number")


def _ends(row: Mapping[str, Any], where: str) -> Iterator[int]:
    """The tokens that end a text: one, a list, or none."""
    given = row.get(_END)
    for token in cast("list[Any]", given) if isinstance(given, list) else [] if given is None else [given]:
        if not is_integer(token):
            raise UsageError(f"{where}: {_END} is {_shown(given)}, which is neither a token nor a list of tokens")
        yield token


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:76]} ..."
