"""A model's weights: Hugging Face's names and layout, checked before anything is computed with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from conformance.ops.normal import normal
from toolchain.errors import UsageError
from toolchain.files import replacing
from toolchain.pinned.models import find, models

from ..config import GPTConfig
from ..files import gguf_model
from ..files.gguf import read_header
from ..files.hugging_face import config_row, read_config
from ..files.stored import CONFIG, GENERATION, WHOLE, find_folder, is_gguf, read_json, read_tensors
from . import quantize
from .spelling import HEAD, input_first, our_names, stored_names
from .threads import in_threads

Array = NDArray[Any]
SHIPPED = Path(__file__).parent.parent / "checkpoint"  # the small byte-level GPT that comes with this repository
_STORAGE = {
    "f32": np.dtype(np.float32), "tf32": np.dtype(np.float32), "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}  # fmt: skip
_INFINITY = {_STORAGE["f16"]: 0x7C00, _STORAGE["bf16"]: 0x7F80}  # its bits


class Weights(Mapping[str, Array]):
    """Tensors by name, as `shapes` lists them."""

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        self._tensors = dict(tensors)

    def __getitem__(self, name: str) -> Array:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def astype(self, dtype: str) -> Weights:
        """The weights in the storage of an entry's dtype: f32, tf32 (which is f32), f16 or bf16.

        Raises UsageError for a weight that is out of its range.
        """
        storage(dtype)
        made = in_threads(lambda named: stored_as(*named, dtype), self._tensors.items())
        return Weights(dict(zip(self._tensors, made, strict=True)))


def storage(dtype: str) -> np.dtype[Any]:
    """What weights of an entry's dtype are stored as. Raises UsageError for one that is none."""
    if dtype not in _STORAGE:
        raise UsageError(f"no dtype {dtype!r}", hint=f"one of {', '.join(_STORAGE)}")
    return _STORAGE[dtype]


def read_as(dtype: str) -> np.dtype[Any]:
    """What quantized numbers are read as, to be stored as `dtype`: what is beyond f16 is found by stored_as."""
    return storage("f32" if dtype == "f16" else dtype)


def stored_as(name: str, tensor: Array, dtype: str) -> Array:
    """The tensor in the storage of a dtype. Raises UsageError for a weight that is out of its range. One that is not of
    numbers that weights may have stays as it is: `check` refuses it; so do 8-bit weights and their scales."""
    wanted = storage(dtype)
    if tensor.dtype not in _STORAGE.values() or name.endswith(quantize.SCALE):
        return tensor
    with np.errstate(over="ignore"):
        made = tensor.astype(wanted, copy=False)
    if not finite(made):
        if finite(tensor):
            raise UsageError(f"{name} has a weight outside of {dtype}'s range", hint="use bf16 or f32")
        raise UsageError(f"{name} holds NaN or infinity")
    return made


def finite(tensor: Array) -> bool:
    """False if a tensor holds NaN or infinity. numpy converts each number of 16 bits to find out, which takes ten times
    as long as to compare its bits: the exponent of these two is the largest."""
    if tensor.dtype not in _INFINITY:
        return bool(np.isfinite(tensor).all())
    infinity = _INFINITY[tensor.dtype]
    # As signed numbers those with a sign are below 0, as unsigned ones above all others.
    signed, unsigned = (tensor.view(bits).max(initial=0) for bits in (np.int16, np.uint16))
    return bool(signed < infinity and unsigned < infinity + 2**15)


def shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor of a model, by name: linear weights of a GPT-2 are stored (in, out), of a llama (out, in)."""
    return _llama(config) if config.family == "llama" else _gpt2(config)


def _gpt2(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    c = config.n_embd
    found: dict[str, tuple[int, ...]] = {"wte.weight": (config.vocab_size, c), "wpe.weight": (config.n_ctx, c)}
    for layer in range(config.n_layer):
        for name, shape in {
            "ln_1": (c,), "attn.c_attn": (c, 3 * c), "attn.c_proj": (c, c),
            "ln_2": (c,), "mlp.c_fc": (c, 4 * c), "mlp.c_proj": (4 * c, c),
        }.items():  # fmt: skip
            found[f"h.{layer}.{name}.weight"] = shape
            found[f"h.{layer}.{name}.bias"] = shape[-1:]
    return {**found, "ln_f.weight": (c,), "ln_f.bias": (c,)}


def _llama(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """With the names of transformers' LlamaForCausalLM and Qwen3ForCausalLM, without `model.` before them."""
    c, f, size = config.n_embd, config.ffn, config.head_size
    q, kv = config.n_head * size, config.kv_heads * size
    found: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (config.vocab_size, c)}
    for layer in range(config.n_layer):
        for name, shape in {
            "input_layernorm": (c,), "self_attn.q_proj": (q, c), "self_attn.k_proj": (kv, c),
            "self_attn.v_proj": (kv, c), "self_attn.o_proj": (c, q),
            **({"self_attn.q_norm": (size,), "self_attn.k_norm": (size,)} if config.qk_norm else {}),
            "post_attention_layernorm": (c,), "mlp.gate_proj": (f, c), "mlp.up_proj": (f, c), "mlp.down_proj": (c, f),
        }.items():  # fmt: skip
            found[f"layers.{layer}.{name}.weight"] = shape
    head = {} if config.tied else {"lm_head.weight": (config.vocab_size, c)}
    return {**found, "norm.weight": (c,), **head}


def random_weights(config: GPTConfig, seed: int) -> Weights:
    """Seeded f32 weights, distributed as GPT-2's are before training. Biases differ from 0 and gains from 1, so that a
    kernel that leaves one out gives wrong results."""
    rng = np.random.default_rng(seed)
    tensors: dict[str, Array] = {}
    for name, shape in shapes(config).items():
        values = normal(rng, shape, np.float32)
        values *= np.float32(0.02)
        norm = "ln_" in name or "norm" in name
        if norm:
            values *= 5
        if norm and name.endswith("weight"):
            values += 1
        if name.endswith(("c_proj.weight", "o_proj.weight", "down_proj.weight")):  # added to the residual stream
            values /= np.float32(np.sqrt(2 * config.n_layer))
        tensors[name] = values
    return Weights(tensors)


def quantized(
    config: GPTConfig, weights: Weights, kind: str, *, logits: bool = False
) -> tuple[GPTConfig, Weights]:  # fmt: skip
    """A model with its products in 8 bits: see quantize.py. `kind`: f8 or i8, or one of weights alone, f8-weights or
    i8-weights. `logits`: these in 8 bits too. Raises UsageError for another kind, for a llama whose activations are to
    be rounded too, for logits of rows that are not rounded, and for a model that is quantized already."""
    if kind not in quantize.CHOICES:
        raise UsageError(f"no quantization {kind!r}", hint=f"one of {', '.join(quantize.CHOICES)}")
    weights_only = kind.endswith(quantize.ONLY)
    if config.family != "gpt2" and not weights_only:
        raise UsageError(
            f"the activations of a {config.family} are not rounded here", hint=f"take {kind}{quantize.ONLY}"
        )
    if logits and weights_only:
        raise UsageError("logits in 8 bits are of rows in 8 bits", hint=f"take {kind.removesuffix(quantize.ONLY)}")
    if quantize.is_quantized(weights):
        raise UsageError("these weights are quantized already")
    check(config, weights, "weights")
    made = quantize.quantize(weights, quantize.KINDS[kind.removesuffix(quantize.ONLY)], head=logits)
    return replace(config, weights_only=weights_only), Weights(made)


def check(config: GPTConfig, weights: Mapping[str, Array], where: str) -> None:
    """Raises UsageError for a missing or unknown tensor, a wrong shape or dtype, NaN or infinity, and for a scale of
    8-bit weights that is none."""
    check_shapes(config, {name: tensor.shape for name, tensor in weights.items()}, where)
    quantize.check_scales(weights, where)
    kind = (quantize.kind_of(weights) or quantize.F8) if quantize.is_quantized(weights) else None
    for name, tensor in weights.items():
        narrow = quantize.is_product(name) or (name == HEAD and quantize.has_head(weights))
        check_one(where, name, tensor, kind if narrow else None)


def check_shapes(config: GPTConfig, found: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Raises UsageError for a missing or unknown tensor, and for a wrong shape."""
    wanted = shapes(config)
    if quantize.is_quantized(found):
        wanted = quantize.shapes(wanted, head=quantize.has_head(found) and config.family == "gpt2")
    if missing := [name for name in wanted if name not in found]:
        raise UsageError(
            f"{where}: {len(missing)} tensors are missing: {', '.join(missing[:4])}{' ...' * (len(missing) > 4)}"
        )
    if unknown := [name for name in found if name not in wanted]:
        raise UsageError(
            f"{where}: tensors that this model does not have: {', '.join(unknown[:4])}{' ...' * (len(unknown) > 4)}"
        )
    for name, shape in wanted.items():
        if found[name] != shape:
            raise UsageError(f"{where}: {name} has shape {found[name]}, wants {shape}")


def check_one(where: str, name: str, tensor: Array, kind: quantize.Kind | None = None) -> None:
    """Raises UsageError for a tensor of a wrong dtype, and for NaN or infinity. `kind`: it has to be in 8 bits."""
    if kind is not None and tensor.dtype != kind.dtype:
        raise UsageError(f"{where}: {name} is {tensor.dtype}, but has scales: it must be {kind.dtype}")
    if kind is None and tensor.dtype not in _STORAGE.values():
        raise UsageError(f"{where}: {name} is {tensor.dtype}; weights are float32, float16 or bfloat16")
    if not finite(tensor):
        raise UsageError(f"{where}: {name} holds NaN or infinity")


def load(path_or_name: str | Path, dtype: str | None = None) -> tuple[GPTConfig, Weights, Path]:
    """Config, weights and place of a checkpoint: a GGUF file, or a folder with `config.json` and `model.safetensors`,
    whole or in parts with an index; a name of models.toml such as `smollm2`, or that of a repository of the Hugging
    Face hub such as `openai-community/gpt2`.

    `dtype`: in whose storage the weights are wanted. Those of a llama are read straight into it, which takes little
    memory beside it; a GPT-2's stay as they are stored, because what may be folded into them comes first. Without it
    quantized weights are read as f32. Raises UsageError, and ToolchainError for a model of that table that cannot be
    downloaded."""
    place = found(path_or_name)
    if is_gguf(place):
        return _load_gguf(Path(place), dtype or "f32")
    folder = find_folder(place)
    config = sizes_of(folder)
    said = quantize.taken(read_json(folder / CONFIG), str(folder / CONFIG))[1]
    llama = config.family == "llama"
    tensors, file = read_tensors(folder, partial(stored_as, dtype=dtype) if dtype and llama else None)
    named = quantize.with_wide_scales(_named(config, tensors, str(file)))
    _check_said(named, said, file)
    weights = Weights(named if llama or said.kind is not None else input_first(config, named, str(file)))
    check(config, weights, str(file))
    return config, weights, folder


def found(path_or_name: str | Path) -> str | Path:
    """The file of a model of models.toml, downloaded if it is not there; anything else as it is."""
    named = path_or_name in models() and not Path(path_or_name).exists()
    return find(str(path_or_name)) if named else path_or_name


def _named(config: GPTConfig, tensors: Mapping[str, Array], where: str) -> dict[str, Array]:
    names = our_names(config, tensors, lambda one, other: np.array_equal(tensors[one], tensors[other]), where)
    return {name: tensors[full] for name, full in names.items()}


def _check_said(tensors: Mapping[str, Array], said: quantize.Said, file: Path) -> None:
    """Raises UsageError unless the tensors are quantized as the config says."""
    kind = said.kind
    if quantize.is_quantized(tensors) != (kind is not None):
        has = "scales, but its config.json does not" if kind is None else "no scales, but its config.json does"
        raise UsageError(f"{file}: it has {has} say so")
    if kind is not None and quantize.kind_of(tensors) is not kind:
        raise UsageError(f"{file}: its config.json says {kind.format}, and its weights are not {kind.dtype}")
    if quantize.has_head(tensors) != said.head:
        has = "no lm_head" if said.head else "an lm_head"
        raise UsageError(f"{file}: it has {has} in 8 bits, but its config.json says otherwise")


def sizes_of(folder: Path) -> GPTConfig:
    """The config in a checkpoint's folder. Raises UsageError."""
    file, generation = folder / CONFIG, folder / GENERATION
    said = read_json(generation) if generation.exists() else None
    row, stored = quantize.taken(read_json(file), str(file))
    config = read_config(row, str(file), said, str(generation))
    if stored.kind is not None and config.family != "gpt2" and not stored.weights_only:
        raise UsageError(f"{file}: a {config.family} whose activations are in 8 bits is not computed here")
    return replace(config, weights_only=stored.weights_only)


def _load_gguf(path: Path, dtype: str) -> tuple[GPTConfig, Weights, Path]:
    file = read_header(path)
    config = gguf_model.read_config(file)
    tensors: dict[str, Array] = {}
    for name, stored in gguf_model.our_names(file).items():
        tensor = gguf_model.read_tensor(file, config, stored, read_as(dtype))
        tensors[name] = stored_as(f"{path}: {name}", tensor, dtype)
    check(config, tensors, str(path))
    return config, Weights(tensors), path


def save(folder: Path, config: GPTConfig, weights: Mapping[str, Array]) -> None:
    """Write a checkpoint that `load` reads. The old files are replaced only after both new ones are written, so a
    failure leaves an older checkpoint intact. Raises UsageError for weights that `load` would refuse, and OSError."""
    check(config, weights, str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / CONFIG) as described, replacing(folder / WHOLE) as stored:
        kind = quantize.kind_of(weights)
        head = quantize.has_head(weights)
        said = {quantize.KEY: kind.scheme(weights_only=config.weights_only, head=head)} if kind else {}
        row = config_row(config) | said
        described.write_text(json.dumps(row, indent=2) + "\n")
        mode = stored.stat().st_mode
        try:
            save_file(stored_names(config, weights), stored, metadata={"format": "pt"})
        except SafetensorError as error:  # a full disk
            raise OSError(str(error)) from error
        stored.chmod(mode)  # safetensors makes the file anew, for its owner alone
