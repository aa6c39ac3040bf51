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

from .config import GPTConfig
from .weights import Weights

Array = NDArray[Any]
NORMED = (("ln_1", "attn.c_attn"), ("ln_2", "mlp.c_fc"))  # each norm, and the product that reads its result
ADDED = ("attn.c_proj", "mlp.c_proj")  # the products that are added to the residual stream


def fold(config: GPTConfig, weights: Mapping[str, Array]) -> Weights:
    """Weights in f32 that compute the same function. The norms within the layers have gains of 1 and shifts of 0. The
    weights (in, out) of c_attn and c_fc add up to 0 over their inputs, so a row's mean does not change the product. The
    weights and biases of both c_proj add up to 0 over their outputs, so what they add has a mean of 0. The embeddings
    and the last norm stay as they are; embedding_centred takes the mean off the embedding's result."""
    found: dict[str, Array] = {}
    for layer in range(config.n_layer):
        prefix = f"h.{layer}."
        own = {name: np.asarray(tensor, np.float32) for name, tensor in weights.items() if name.startswith(prefix)}
        _fold_layer(config.n_embd, prefix, own)
        found |= own
    return Weights({**weights, **found})


def _fold_layer(width: int, prefix: str, found: dict[str, Array]) -> None:
    """Fold one layer in place. Only means are summed in f64: with everything in f64, GPT-2 XL takes 25 s, twice as
    long."""
    for norm, product in NORMED:
        gain, shift = (f"{prefix}{norm}.{part}" for part in ("weight", "bias"))
        weight, bias = (f"{prefix}{product}.{part}" for part in ("weight", "bias"))
        found[bias] = found[bias] + found[shift] @ found[weight]
        scaled = found[gain][:, None] * found[weight]  # (C, N)
        found[weight] = scaled - _mean(scaled, axis=0)
        found[gain], found[shift] = np.ones(width, np.float32), np.zeros(width, np.float32)
    for product in ADDED:
        for name in (f"{prefix}{product}.weight", f"{prefix}{product}.bias"):  # (K, C), (C,)
            found[name] = found[name] - _mean(found[name], axis=-1)


def _mean(tensor: Array, axis: int) -> Array:
    return tensor.mean(axis=axis, dtype=np.float64, keepdims=True).astype(np.float32)
