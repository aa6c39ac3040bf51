"""Moves the parts of a norm that are the same for every row into the weights beside it, when these are loaded.

layernorm(x) = (x - mean) / deviation * gain + shift, and its result is multiplied by W, with b added. Gain and shift
can be multiplied into W and b beforehand. If everything that is added to the residual stream has a mean of 0, then so
has x, and the mean need not be subtracted. It remains to divide each row by its root mean square, and that can be done
to the result of the product.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import GPTConfig
from .threads import in_threads
from .weights import Weights

Array = NDArray[Any]
READS = {"attn.c_attn": "ln_1", "mlp.c_fc": "ln_2"}  # each product that reads a norm's result, and the norm
ADDED = ("attn.c_proj", "mlp.c_proj")  # the products that are added to the residual stream
_LAYER = re.compile(r"h\.\d+\.")

GAINS = {  # of a llama: each norm, and the products that read its result
    "input_layernorm": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "post_attention_layernorm": ("mlp.gate_proj", "mlp.up_proj"),
}


def fold(weights: Mapping[str, Array]) -> Weights:
    """Weights in f32 that compute the same function. The norms within the layers have gains of 1 and shifts of 0. The
    weights (in, out) of c_attn and c_fc add up to 0 over their inputs, so a row's mean does not change the product. The
    weights and biases of both c_proj add up to 0 over their outputs, so what they add has a mean of 0. The embeddings
    and the last norm stay as they are; embedding_centred takes the mean off the embedding's result."""
    made = in_threads(lambda name: fold_one(name, weights.__getitem__), weights)
    return Weights(dict(zip(weights, made, strict=True)))


def fold_one(name: str, take: Callable[[str], Array]) -> Array:
    """One of the tensors that `fold` makes, in the same bits. `take`: reads a tensor that is not folded, or those
    columns of c_attn and c_fc, and those rows of both c_proj, that are wanted. It is called for the tensor itself, and
    then for its norm's gain or shift, and for a product's bias also for its weight, last. Only sums are in f64: with
    everything in f64, GPT-2 XL takes twice as long."""
    found = _LAYER.match(name)
    if found is None:
        return take(name)
    layer, (of, _, part) = found[0], name[found.end() :].rpartition(".")  # such as mlp.c_fc and bias
    if of in READS.values():
        return np.full(take(name).shape, part == "weight", np.float32)
    if of in ADDED:
        tensor = _f32(take(name))  # (K, C), (C,)
        return tensor - _mean(tensor, axis=-1)
    if part == "bias":
        bias, shift, weight = (_f32(take(each)) for each in (name, f"{layer}{READS[of]}.bias", f"{layer}{of}.weight"))
        return bias + _times(shift, weight)
    weight, gain = _f32(take(name)), _f32(take(f"{layer}{READS[of]}.weight"))
    with np.errstate(over="ignore", invalid="ignore"):  # stored_as names what is beyond f32
        scaled = gain[:, None] * weight  # (C, N)
        scaled -= _mean(scaled, axis=0)
    return scaled


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


def _f32(tensor: Array) -> Array:
    """In the order of its rows, so that sums are made in the same order wherever it comes from."""
    return np.ascontiguousarray(tensor, np.float32)


def _mean(tensor: Array, axis: int) -> Array:
    return tensor.mean(axis=axis, dtype=np.float64, keepdims=True).astype(np.float32)


def _times(row: Array, tensor: Array) -> Array:
    """row @ tensor. Not by BLAS: there each kind of CPU rounds in another way, and its threads wait for ours. Here
    the products are exact, and the sums alike everywhere."""
    return np.einsum("k,kn->n", row, tensor, dtype=np.float64).astype(np.float32)
