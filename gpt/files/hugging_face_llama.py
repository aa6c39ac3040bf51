"""The `config.json` of a Llama (SmolLM2 is one) and of a Qwen3, as transformers has it. What it computes by each key is
read, or refused by name unless it has no effect; a key that is not there has the value that it has in transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolchain.errors import UsageError

from ..config import GPTConfig, llama
from ..rope import llama3_divisors
from .keys import DECODER, check_values, refuse_variants, shown, spelling

_IS_IT = "is it the config.json of a Llama or a Qwen3?"
MODELS = ("llama", "qwen3")
_SIZES = {
    "n_layer": "num_hidden_layers", "n_head": "num_attention_heads", "n_embd": "hidden_size",
    "n_ctx": "max_position_embeddings", "vocab_size": "vocab_size", "ffn": "intermediate_size",
}  # fmt: skip
_ATTENTION = "full_attention"
_KV_HEADS, _HEAD_SIZE, _EPS = "num_key_value_heads", "head_dim", "rms_norm_eps"
# What each computes, and other values of the same meaning.
_BOTH: Mapping[str, tuple[object, ...]] = {
    "hidden_act": ("silu", "swish"),
    "attention_bias": (False, None),
    "partial_rotary_factor": (1, None),
    **DECODER,
}
_MODEL: Mapping[str, Mapping[str, tuple[object, ...]]] = {
    "llama": {**_BOTH, "mlp_bias": (False, None), "rope_interleaved": (False, None)},
    "qwen3": {**_BOTH, "use_sliding_window": (False, None)},
}
_ROPE = {  # the kinds of rotary positions, and the keys of each beside `rope_theta`
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}
_BASE = 10000.0  # of the frequencies, in transformers
# Keys of it that change nothing here: two names of its kind, its base, which is read, and the positions before scaling.
_ROPE_READ = ("rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings")


def read(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a GPTConfig, but for the tokens that end a text."""
    model = row["model_type"]
    refuse_variants(row, _MODEL[model], where, "Llama" if model == "llama" else "Qwen3")
    if (kinds := row.get("layer_types")) not in (None, [_ATTENTION] * row.get("num_hidden_layers", 0)):
        raise UsageError(f"{where}: layer_types is {shown(kinds)}; every layer here has {_ATTENTION}")
    spelled = {name: spelling(row, (key,), where, _IS_IT) for name, key in _SIZES.items()}
    sizes: dict[str, Any] = {name: row[key] for name, key in spelled.items()}
    spelled |= {"kv_heads": _KV_HEADS, "head_size": _HEAD_SIZE, "eps": _EPS, "rope_base": "rope_theta"}
    for name, key, usual in (("kv_heads", _KV_HEADS, 32), ("head_size", _HEAD_SIZE, 128)):
        given = row.get(key, usual if model == "qwen3" else None)
        if given is not None:  # else it follows from the other sizes
            sizes[name] = given
    rope, rope_where = _rope(row, where)
    sizes |= {"eps": row.get(_EPS, 1e-6), "rope_base": rope.get("rope_theta", _BASE)}
    check_values(sizes, ("eps", "rope_base"), spelled, where, _IS_IT)
    tied = row.get("tie_word_embeddings", False)
    if not isinstance(tied, bool):
        raise UsageError(f"{where}: tie_word_embeddings is {shown(tied)}, which is neither true nor false")
    size = sizes.get("head_size", sizes["n_embd"] // sizes["n_head"])
    return {
        **sizes, **llama.keywords, "tied": tied, "qk_norm": model == "qwen3",
        "rope_scaling": _divisors(rope, sizes["rope_base"], size, rope_where),
    }  # fmt: skip


def _rope(row: Mapping[str, Any], where: str) -> tuple[Mapping[str, Any], str]:
    """What the file says about rotary positions, and where: in `rope_parameters`, as files before transformers 5 do in
    `rope_scaling` and `rope_theta`. Some have both, alike."""
    found: dict[str, Any] = {}
    place = f"{where}: rope_parameters"
    for key in ("rope_scaling", "rope_parameters"):
        given = row.get(key)
        if given is None:
            continue
        if not isinstance(given, dict):
            raise UsageError(f"{where}: {key} is {shown(given)}, which is not an object")
        if found and found != given:
            raise UsageError(f"{where}: rope_scaling and {key} are two that differ")
        place, found = f"{where}: {key}", dict(cast("dict[str, Any]", given))
    if row.get("rope_theta") is not None:
        if found.get("rope_theta", row["rope_theta"]) != row["rope_theta"]:
            raise UsageError(f"{where}: rope_theta is {shown(row['rope_theta'])} and {shown(found['rope_theta'])}")
        found["rope_theta"] = row["rope_theta"]
    return found, place


def _divisors(rope: Mapping[str, Any], base: float, size: int, where: str) -> tuple[float, ...] | None:
    """What the frequencies of a head of that size are divided by. Raises UsageError for a kind of scaling that is not
    computed, and for a key that it does not have."""
    kind = rope.get("rope_type", rope.get("type", "default"))
    if not isinstance(kind, str) or kind not in _ROPE:
        raise UsageError(f"{where} is of the kind {shown(kind)}; computed here are {', '.join(_ROPE)}")
    if rope.get("partial_rotary_factor", 1) != 1:
        raise UsageError(f"{where} has the partial_rotary_factor {shown(rope['partial_rotary_factor'])}; here it is 1")
    if unknown := [key for key in rope if key not in (*_ROPE_READ, *_ROPE[kind])]:
        raise UsageError(f"{where} has {unknown[0]}, which the kind {kind} does not read")
    for key in _ROPE[kind]:
        value = rope.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**31:
            raise UsageError(f"{where} has {key} {shown(value)}, which is not a number above 0")
    if kind == "llama3":
        if rope["low_freq_factor"] >= rope["high_freq_factor"]:
            raise UsageError(f"{where} has a low_freq_factor that is not below its high_freq_factor")
        return llama3_divisors(base, size, rope)
    return (float(rope["factor"]),) * (size // 2) if kind == "linear" else None


def row(config: GPTConfig) -> dict[str, Any]:
    """The `config.json` that `read` reads. Raises UsageError for divisors of frequencies that differ: which kind of
    scaling they follow from is not known."""
    divisors = config.rope_scaling or (1.0,)
    if len({*divisors}) > 1:
        raise UsageError("a config.json cannot state a model's own divisors of its rotary frequencies")
    linear = {"rope_type": "linear", "factor": divisors[0]}
    name = "Qwen3" if config.qk_norm else "Llama"
    return {
        "model_type": name.lower(), "architectures": [f"{name}ForCausalLM"], "hidden_act": "silu",
        **{key: getattr(config, field) for field, key in _SIZES.items()},
        _KV_HEADS: config.kv_heads, _HEAD_SIZE: config.head_size, _EPS: config.eps,
        "tie_word_embeddings": config.tied,
        "rope_parameters": {
            "rope_theta": config.rope_base, **({"rope_type": "default"} if config.rope_scaling is None else linear)
        },
    }  # fmt: skip
