"""A Llama or Qwen3 in a GGUF file: its keys as a config, its tensors by our names and in our order.

Every key below the architecture's name is read, without effect, or refused by name; so is every tensor. Keys and names
are those of ggml's docs/gguf.md and of the writer of its converters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from toolchain.errors import UsageError
from toolchain.tables import is_integer

from ..config import GPTConfig, llama
from .gguf import GGUFFile
from .keys import check_values, in_vocabulary, shown

Array = NDArray[Any]
ARCHITECTURES = ("llama", "qwen3")
_HINT = "convert the model again"
_SIZES = {
    "n_layer": "block_count", "n_head": "attention.head_count", "n_embd": "embedding_length",
    "n_ctx": "context_length", "ffn": "feed_forward_length", "kv_heads": "attention.head_count_kv",
    "head_size": "attention.key_length", "eps": "attention.layer_norm_rms_epsilon", "rope_base": "rope.freq_base",
}  # fmt: skip
_FOLLOW = ("kv_heads", "head_size", "rope_base")  # need not be there
_KINDS, _FACTOR = "rope.scaling.type", "rope.scaling.factor"
# Others that a file may have, and the values that change nothing here; None: any.
_OTHERS: Mapping[str, tuple[object, ...] | None] = {
    "vocab_size": None,  # that of the embedding
    "attention.value_length": None, "rope.dimension_count": None,  # compared with the head size
    _KINDS: ("none", "linear"), _FACTOR: None, "rope.scaling.original_context_length": None,
    "rope.scaling.finetuned": None, "expert_count": (0,), "expert_used_count": (0,), "attention.causal": (True,),
}  # fmt: skip
# Outside of the architecture.
_GENERAL: Mapping[str, tuple[object, ...]] = {
    "general.type": ("model",), "general.quantization_version": (2,), "split.count": (0, 1), "split.no": (0,),
}  # fmt: skip
_ENDS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")
_EMBEDDING, _HEAD, _DIVISORS = "token_embd.weight", "output.weight", "rope_freqs.weight"
_ONCE = {_EMBEDDING: "embed_tokens", "output_norm.weight": "norm", _HEAD: "lm_head"}
_LAYER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
_IN_LAYER = re.compile(r"blk\.(\d{1,5})\.(\w+)\.weight")


def read_config(file: GGUFFile) -> GPTConfig:
    """The config that a file's keys and the shape of its embedding state. Raises UsageError."""
    keys, where = file.keys, str(file.path)
    kind = keys.get("general.architecture")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        raise UsageError(
            f"{where}: general.architecture is {shown(kind)}; computed here are {', '.join(ARCHITECTURES)}"
        )
    for key, value in keys.items():
        _check_key(kind, key, value, where)
    spelled = {name: f"{kind}.{key}" for name, key in _SIZES.items()}
    sizes = {name: keys[key] for name, key in spelled.items() if key in keys}
    if missing := [spelled[name] for name in _SIZES if name not in sizes and name not in _FOLLOW]:
        raise UsageError(f"{where}: it has no {missing[0]}", hint=_HINT)
    if _EMBEDDING not in file.tensors:
        raise UsageError(f"{where}: it has no tensor {_EMBEDDING}", hint=_HINT)
    vocabulary = file.tensors[_EMBEDDING].shape[0]
    if keys.get(f"{kind}.vocab_size", vocabulary) != vocabulary:
        raise UsageError(f"{where}: {kind}.vocab_size is not the {vocabulary} rows of {_EMBEDDING}")
    sizes["vocab_size"] = vocabulary
    check_values(sizes, ("eps", "rope_base"), spelled | {"vocab_size": f"{kind}.vocab_size"}, where, _HINT)
    found: dict[str, Any] = sizes
    size = cast("int", found.get("head_size", found["n_embd"] // found["n_head"]))
    for key in ("attention.value_length", "rope.dimension_count"):
        if keys.get(f"{kind}.{key}", size) != size:
            raise UsageError(
                f"{where}: {kind}.{key} is {shown(keys[f'{kind}.{key}'])}; here it is the head size, {size}"
            )
    return llama(
        **found, tied=_HEAD not in file.tensors, qk_norm=kind == "qwen3",
        rope_scaling=_divisors(file, kind, size),
        end_tokens=in_vocabulary((cast("int", keys[key]) for key in _ENDS if is_integer(keys.get(key))), vocabulary),
    )  # fmt: skip


def _check_key(kind: str, key: str, value: object, where: str) -> None:
    own = key.removeprefix(f"{kind}.")
    if own == key:
        usual = _GENERAL.get(key)
    elif isinstance(value, np.ndarray):  # as of models whose layers differ in size
        raise UsageError(f"{where}: {key} is {shown(value)}; here it is one value")
    elif own in _OTHERS:
        usual = _OTHERS[own]
    elif own in _SIZES.values():
        return
    else:
        raise UsageError(f"{where}: {key} is {shown(value)}, which is not computed here")
    if usual is not None and value not in usual:
        raise UsageError(f"{where}: {key} is {shown(value)}; here it is {' or '.join(map(repr, usual))}")


def _divisors(file: GGUFFile, kind: str, size: int) -> tuple[float, ...] | None:
    """What the frequencies of rotary positions are divided by: one factor, or a tensor of one for each pair."""
    where = file.path
    factor = file.keys.get(f"{kind}.{_FACTOR}", 1.0)
    if not isinstance(factor, float) or not 0 < factor < 2**31:
        raise UsageError(f"{where}: {kind}.{_FACTOR} is {shown(factor)}, which is not a number above 0")
    if file.keys.get(f"{kind}.{_KINDS}") == "none":
        factor = 1.0
    if _DIVISORS not in file.tensors:
        return None if factor == 1 else (factor,) * (size // 2)
    if file.tensors[_DIVISORS].shape != (size // 2,):
        raise UsageError(f"{where}: {_DIVISORS} has shape {file.tensors[_DIVISORS].shape}, wants {(size // 2,)}")
    each = file.read(_DIVISORS, np.float64) * factor
    if not (np.isfinite(each) & (each > 0)).all():
        raise UsageError(f"{where}: {_DIVISORS} has a number that is not above 0")
    return tuple(each.tolist())


def our_names(file: GGUFFile) -> dict[str, str]:
    """The stored name of each tensor by ours. Raises UsageError for one that no such model has."""
    found: dict[str, str] = {}
    for name in file.tensors:
        if name == _DIVISORS:
            continue
        ours = _our_name(name)
        if ours is None:
            raise UsageError(f"{file.path}: it has a tensor {name}, which this model does not have")
        found[ours] = name
    return found


def read_tensor(file: GGUFFile, config: GPTConfig, name: str, dtype: DTypeLike) -> Array:
    """A tensor by its stored name, as `dtype`, its rows in our order. Raises UsageError.

    ggml turns pairs of neighbours in a Llama's heads, so the rows of q and k lie in that order in its files. A Qwen3's
    lie as ours."""
    tensor = file.read(name, dtype)
    if file.keys["general.architecture"] == "llama" and name.endswith((".attn_q.weight", ".attn_k.weight")):
        return halves(tensor, config.head_size, f"{file.path}: {name}")
    return tensor


def _our_name(name: str) -> str | None:
    if name in _ONCE:
        return f"{_ONCE[name]}.weight"
    found = _IN_LAYER.fullmatch(name)
    return f"layers.{found[1]}.{_LAYER[found[2]]}.weight" if found and found[2] in _LAYER else None


def halves(tensor: Array, size: int, where: str) -> Array:
    """Rows (H * D, C) of heads whose pairs are neighbours, reordered so that a pair has one row in each half."""
    if tensor.ndim != 2 or len(tensor) % size:
        raise UsageError(f"{where} has shape {tensor.shape}, which is not rows of heads of {size}")
    heads = tensor.reshape(-1, size // 2, 2, tensor.shape[1])
    return np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(tensor.shape)
