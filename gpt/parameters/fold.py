"""Moves the parts of a norm that are the same for every row into the weights beside it, when these are loaded.

layernorm(x) = (x - mean) / deviation * gain + shift, and its result is multiplied by W, with b added. Gain and shift
can be multiplied into W and b beforehand. If everything that is added to the residual stream has a mean of 0, then so
has x, and the mean need not be subtracted. It remains to divide each row by its root mean square, and that can be done
to the result of the product.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import GPTConfig
from .threads import in_threads
from .weights import Weights

Array = NDArray[Any]
NORMED = (("ln_1", "attn.c_attn"), ("ln_2", "mlp.c_fc"))  # each norm, and the product that reads its result
ADDED = ("attn.c_proj", "mlp.c_proj")  # the products that are added to the residual stream

GAINS = {  # of a llama: each norm, and the products that read its result
    "input_layernorm": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "post_attention_layernorm": ("mlp.gate_proj", "mlp.up_proj"),
}


def fold(config: GPTConfig, weights: Mapping[str, Array]) -> Weights:
    """Weights in f32 that compute the same function. The norms within the layers have gains of 1 and shifts of 0. The
    weights (in, out) of c_attn and c_fc add up to 0 over their inputs, so a row's mean does not change the product. The
    weights and biases of both c_proj add up to 0 over their outputs, so what they add has a mean of 0. The embeddings
    and the last norm stay as they are; embedding_centred takes the mean off the embedding's result."""
    found = dict(weights)
    for layer in in_threads(lambda layer: _fold_layer(f"h.{layer}.", config.n_embd, weights), range(config.n_layer)):
        found |= layer
    return Weights(found)


def fold_gains(config: GPTConfig, weights: Mapping[str, Array]) -> Weights:
    """Weights of a llama in f32 that compute the same function: the norms before the products have gains of 1. An
    RMSNorm subtracts no mean and has no shift."""
    found = dict(weights)
    for layer in range(config.n_layer):
        for norm, products in GAINS.items():
            gain = np.asarray(weights[f"layers.{layer}.{norm}.weight"], np.float32)
            found[f"layers.{layer}.{norm}.weight"] = np.ones_like(gain)
            for product in products:
                name = f"layers.{layer}.{product}.weight"  # (out, in)
                found[name] = np.asarray(weights[name], np.float32) * gain
    return Weights(found)


def _fold_layer(prefix: str, width: int, weights: Mapping[str, Array]) -> dict[str, Array]:
    """The weights of one layer, folded. Only sums are in f64: with everything in f64, GPT-2 XL takes twice as long."""
    found = {name: np.asarray(tensor, np.float32) for name, tensor in weights.items() if name.startswith(prefix)}
    for norm, product in NORMED:
        gain, shift = (f"{prefix}{norm}.{part}" for part in ("weight", "bias"))
        weight, bias = (f"{prefix}{product}.{part}" for part in ("weight", "bias"))
        found[bias] = found[bias] + _times(found[shift], found[weight])
        scaled = found[gain][:, None] * found[weight]  # (C, N)
        scaled -= _mean(scaled, axis=0)
        found[weight] = scaled
        found[gain], found[shift] = np.ones(width, np.float32), np.zeros(width, np.float32)
    for product in ADDED:
        for name in (f"{prefix}{product}.weight", f"{prefix}{product}.bias"):  # (K, C), (C,)
            found[name] = found[name] - _mean(found[name], axis=-1)
    return found


def _mean(tensor: Array, axis: int) -> Array:
    return tensor.mean(axis=axis, dtype=np.float64, keepdims=True).astype(np.float32)


def _times(row: Array, tensor: Array) -> Array:
    """row @ tensor. Not by BLAS: there each kind of CPU rounds in another way, and its threads wait for ours. Here
    the products are exact, and the sums alike everywhere."""
    return np.einsum("k,kn->n", row, tensor, dtype=np.float64).astype(np.float32)
