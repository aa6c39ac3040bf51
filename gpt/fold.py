"""What a norm does to every row alike, moved into the weights beside it when they are loaded.

layernorm(x) = (x - mean) / deviation * gain + shift, and what follows is a product with W and b added. Gain and shift
go into W and b; and if nothing that is added to the residual stream has a mean, x has none to take off. What is left is
to divide each row by its root mean square, which can be done to the product's result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .config import GPTConfig
from .weights import Weights

Array = NDArray[Any]
NORMED = (("ln_1", "attn.c_attn"), ("ln_2", "mlp.c_fc"))  # each norm, and the product behind it
ADDED = ("attn.c_proj", "mlp.c_proj")  # to the residual stream


def fold(config: GPTConfig, weights: Mapping[str, Array]) -> Weights:
    """Weights in f32 of the same function, whose norms within the layers have gains of 1 and shifts of 0, and whose
    products have no part along a row's mean: weights (in, out) of c_attn and c_fc add up to 0 over their inputs, those
    of both c_proj, and their biases, over their outputs. Embeddings and the last norm stay as they are, so that the
    residual stream has the embedding's mean: see embedding_centred."""
    found: dict[str, Array] = {}
    for layer in range(config.n_layer):
        prefix = f"h.{layer}."
        own = {name: np.asarray(tensor, np.float32) for name, tensor in weights.items() if name.startswith(prefix)}
        _fold_layer(config.n_embd, prefix, own)
        found |= own
    return Weights({**weights, **found})


def _fold_layer(width: int, prefix: str, found: dict[str, Array]) -> None:
    """In place, of one layer. Means are summed in f64; all of it in f64 takes twice as long, of GPT-2 XL 25 s."""
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
