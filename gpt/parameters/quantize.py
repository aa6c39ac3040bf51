"""A model whose products are in 8 bits, as floats (e4m3) or integers: the weights rounded beforehand, with a scale for
each output. A GPT-2's activations are rounded by the kernels, with a scale for each row, or they stay in 16 bits
(`weights_only`), as a llama's do. Norms, biases and embeddings stay as they are, and so do logits, unless they are
asked for: then there is an `lm_head.weight`, the embedding in 8 bits, for logits of many rows.

No text is needed to choose the scales: the largest weight of an output becomes the largest number of the kind, so that
nothing overflows. Stored, it is the checkpoint that compressed-tensors calls `float-quantized` or `int-quantized`:
beside `NAME.weight` (out, in) a `NAME.weight_scale` (out, 1) f32, with weight = stored * scale.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError

from .spelling import HEAD, HEAD_SCALE, LINEAR, LLAMA_LINEAR
from .threads import in_threads

Array = NDArray[Any]
FORMAT, GROUPS = "format", "config_groups"  # keys of compressed-tensors


@dataclass(frozen=True)
class Kind:
    """Numbers of 8 bits. `largest`: what the largest of a row becomes. `type`, `format`: compressed-tensors' names."""

    name: str
    dtype: np.dtype[Any]
    largest: float
    type: str
    format: str

    def scheme(self, *, weights_only: bool, head: bool = False) -> Mapping[str, Any]:
        """What config.json says of such a checkpoint, by compressed-tensors' keys. `head`: logits are in 8 bits too."""
        numbers: Mapping[str, Any] = {"num_bits": 8, "type": self.type, "symmetric": True}
        group: dict[str, Any] = {
            "targets": ["Linear"],
            "weights": {**numbers, "strategy": "channel", "dynamic": False},
            "input_activations": None if weights_only else {**numbers, "strategy": "token", "dynamic": True},
        }
        if weights_only:  # said again: of integers alone the library would else expect several packed in a word
            group[FORMAT] = self.format
        return {
            "quant_method": "compressed-tensors", FORMAT: self.format, "quantization_status": "compressed",
            GROUPS: {"group_0": group}, "ignore": [] if head else ["lm_head"],
        }  # fmt: skip


F8 = Kind("f8", np.dtype(ml_dtypes.float8_e4m3fn), 448.0, "float", "float-quantized")
I8 = Kind("i8", np.dtype(np.int8), 127.0, "int", "int-quantized")
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (F8, I8)}
ONLY = "-weights"  # behind a kind's name: weights_only
CHOICES = (*KINDS, *(f"{name}{ONLY}" for name in KINDS))
LEAST = float(np.finfo(np.float32).smallest_normal)  # a scale: of an output whose weights are all zero
WEIGHT, SCALE = ".weight", ".weight_scale"
EMBEDDING = "wte.weight"  # a GPT-2's
KEY = "quantization_config"
OBSERVER = ("observer", "observer_kwargs")  # of compressed-tensors' keys


def is_product(name: str) -> bool:
    """Whether a tensor is the weight of a product within the layers."""
    linear = LINEAR if _is_gpt2(name) else LLAMA_LINEAR
    return name.startswith(("h.", "layers.")) and name.removesuffix(WEIGHT).endswith(linear) and name.endswith(WEIGHT)


def has_head(names: Mapping[str, Any]) -> bool:
    """Whether logits have a weight of their own in 8 bits."""
    return HEAD_SCALE in names


def _is_gpt2(name: str) -> bool:
    """Whether a tensor is of a GPT-2's layers. Its linear weights are (in, out), those of a llama (out, in)."""
    return name.startswith("h.")


def scale_of(name: str) -> str:
    """The name of the scales of a weight."""
    return name.removesuffix(WEIGHT) + SCALE


def is_quantized(names: Mapping[str, Any]) -> bool:
    """Whether tensors of these names have scales."""
    return any(name.endswith(SCALE) for name in names)


def kind_of(tensors: Mapping[str, Array]) -> Kind | None:
    """The kind of a quantized form, by the first of its products; None of any other, and of one that is damaged."""
    products = [name for name in tensors if is_product(name)] if is_quantized(tensors) else []
    return next((kind for kind in KINDS.values() if products and tensors[products[0]].dtype == kind.dtype), None)


def shapes(whole: Mapping[str, tuple[int, ...]], *, head: bool = False) -> dict[str, tuple[int, ...]]:
    """Every tensor of the quantized form of a model whose tensors have the shapes `whole`. `head`: with a GPT-2's
    logits."""
    found: dict[str, tuple[int, ...]] = {}
    for name, shape in whole.items():
        found[name] = shape[::-1] if is_product(name) and _is_gpt2(name) else shape
        if is_product(name):
            found[scale_of(name)] = (found[name][0], 1)
    if head:
        found[HEAD] = whole[EMBEDDING]
        found[HEAD_SCALE] = (found[HEAD][0], 1)
    return found


def rounded(rows: Array, kind: Kind) -> tuple[Array, Array]:
    """Rows (N, K) in 8 bits (N, K) and their scales (N, 1) f32, as the ops quantize_rows and quantize_rows_i8 round
    them: the scale is the largest magnitude divided by `kind.largest`, and a row is multiplied by its inverse."""
    wide = np.asarray(rows, np.float32)
    scales = np.maximum(np.abs(wide).max(axis=1, keepdims=True) / np.float32(kind.largest), np.float32(LEAST))
    quotients = wide * (np.float32(1) / scales)
    if kind is I8:
        quotients = np.clip(np.rint(quotients), -kind.largest, kind.largest)
    return quotients.astype(kind.dtype), scales


def quantize(tensors: Mapping[str, Array], kind: Kind, *, head: bool = False) -> dict[str, Array]:
    """The quantized form of a model's tensors. `head`: with a GPT-2's logits."""
    names = [name for name in tensors if is_product(name)]
    made = in_threads(lambda name: rounded(_turned(name, tensors[name]), kind), names)
    found = dict(tensors)
    for name, (weight, scales) in zip(names, made, strict=True):
        found[name], found[scale_of(name)] = weight, scales
    if head:
        found[HEAD], found[HEAD_SCALE] = rounded(tensors[EMBEDDING], kind)
    return found


def dequantized(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The weights that a quantized form stands for, in f32, as the model's own lie: what a reference computes with."""
    found = {name: tensor for name, tensor in tensors.items() if not name.endswith(SCALE)}
    for name in filter(is_product, found):
        found[name] = _turned(name, tensors[name].astype(np.float32) * tensors[scale_of(name)])
    if has_head(tensors):
        found[HEAD] = tensors[HEAD].astype(np.float32) * tensors[HEAD_SCALE]  # (V, C)
    return found


def _turned(name: str, weight: Array) -> Array:
    """A linear weight as (out, in) from the form that its model has, and back."""
    return np.ascontiguousarray(weight.T) if _is_gpt2(name) else weight


def with_wide_scales(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Scales of 16 bits, as transformers stores those of a model in them, as f32, which has each of these numbers."""
    narrow = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
    return {
        name: each.astype(np.float32) if name.endswith(SCALE) and each.dtype in narrow else each
        for name, each in tensors.items()
    }


def check_scales(tensors: Mapping[str, Array], where: str) -> None:
    """Raises UsageError for a scale that is not a normal number above 0, or not f32."""
    for name, scales in tensors.items():
        if not name.endswith(SCALE):
            continue
        if scales.dtype != np.float32:
            raise UsageError(f"{where}: {name} is {scales.dtype}; scales are float32")
        good = np.isfinite(scales) & (scales >= LEAST)
        if not good.all():
            at = int(np.argmin(good))
            raise UsageError(
                f"{where}: {name} has {scales.flat[at]} for output {at}: a scale is a normal number above 0"
            )


@dataclass(frozen=True)
class Said:
    """What a `config.json` says of a quantization. `head`: logits are in 8 bits too."""

    kind: Kind | None = None
    weights_only: bool = False
    head: bool = False


def taken(row: object, where: str) -> tuple[object, Said]:
    """A `config.json` without what it says of such a quantization, and that. Raises UsageError if it says that
    activations or weights were quantized in another way."""
    if not isinstance(row, dict) or (said := cast("dict[str, Any]", row).get(KEY)) is None:
        return row, Said()
    rest = {key: value for key, value in cast("dict[str, Any]", row).items() if key != KEY}
    for kind, weights_only, head in itertools.product(KINDS.values(), (False, True), (False, True)):
        if weights_only and head:
            continue  # rows in 16 bits over such a weight are not computed here
        scheme = kind.scheme(weights_only=weights_only, head=head)
        of_scheme = {key: cast("dict[str, Any]", said).get(key) for key in scheme} if isinstance(said, dict) else None
        if _stated(of_scheme) in (_stated(scheme), _stated(_older(scheme))):
            return rest, Said(kind, weights_only, head)
    raise UsageError(
        f"{where}: {KEY} is another than tilestack quantize writes",
        hint="quantize the whole model: tilestack quantize MODEL --output DIR",
    )


def _stated(value: Any) -> Any:
    """Without the keys that say nothing, of which transformers writes all, and those that say how scales were found."""
    if not isinstance(value, Mapping):
        return value
    stated = {key: _stated(each) for key, each in cast("Mapping[str, Any]", value).items() if key not in OBSERVER}
    return {key: each for key, each in stated.items() if each is not None}


def _older(scheme: Mapping[str, Any]) -> Mapping[str, Any]:
    """What older checkpoints say of a scheme: the format once, and not of each group again."""
    groups = {
        name: {key: value for key, value in group.items() if key != FORMAT} for name, group in scheme[GROUPS].items()
    }
    return {**scheme, GROUPS: groups}
