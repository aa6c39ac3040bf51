"""The ops `decode_step`, a whole step of GPT-2, in any precision: float64 and eager say in which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def decode_step(
    arrays: Mapping[str, Array], eps: float, *, wide: type[np.floating[Any]], keep: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Logits (1, V) and the cache after the append, in the dtype `wide`. `arrays`: by the op's names. `keep`: rounds
    what a launch would have left in memory."""
    a = {name: array.astype(wide) for name, array in arrays.items()}
    scaled = "qkv_scales" in a  # weights in 8 bits, from which no norm was taken
    if scaled:
        a |= {name: _untiled(a[name]) for name in ("qkv", "fc")}
    out = a["out"].swapaxes(2, 3).reshape(len(a["out"]), -1, a["proj"].shape[2])  # (L, F, C)
    (token,), (position,) = arrays["tokens"].astype(int), arrays["positions"].astype(int)
    cache, proj = a["cache"], a["proj"]
    heads, size = proj.shape[1], proj.shape[3]

    def by_rms(x: Array) -> Array:
        return x / np.sqrt((x * x).mean() + wide(eps))

    def of_norm(name: str, layer: int, x: Array) -> Array:
        """The product with qkv or fc of a norm of x."""
        weight, bias = a[name][layer], a[f"{name}_bias"][layer]
        if not scaled:
            return weight @ keep(by_rms(x)) + bias
        mean = x.mean()
        by = np.sqrt((x * x).mean() - mean * mean + wide(eps))
        gain = a["norm_1" if name == "qkv" else "norm_2"][layer]
        made = weight @ keep(x * gain / by) - mean / by * a[f"{name}_sums"][layer]
        return made * a[f"{name}_scales"][layer] + bias

    def added(name: str, layer: int, value: Array) -> Array:
        """What a product with proj or out adds to x."""
        return (value * a[f"{name}_scales"][layer] if scaled else value) + a[f"{name}_bias"][layer]

    seen = cache[:, :, : position + 1].reshape(*cache.shape[:2], -1, heads, size)  # (L, 2, S, H, D)
    x = a["wte"][token] + a["wpe"][position]
    x = keep(x - x.mean())
    for layer in range(len(proj)):
        q, *new = keep(of_norm("qkv", layer, x)).reshape(3, heads, size)
        seen[layer, :, position] = new
        keys, values = seen[layer]
        scores = np.einsum("hd,phd->hp", q, keys) / wide(np.sqrt(size))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = keep(np.einsum("hp,phd->hd", weights / weights.sum(-1, keepdims=True), values))
        x = keep(x + added("proj", layer, np.einsum("hcd,hd->c", proj[layer], mixed)))
        hidden = of_norm("fc", layer, x)
        hidden = keep(0.5 * hidden * (1 + np.tanh(wide(np.sqrt(2 / np.pi)) * (hidden + wide(0.044715) * hidden**3))))
        x = keep(x + added("out", layer, hidden @ out[layer]))
    last = keep(by_rms(x - x.mean() if scaled else x) * a["norm_weight"] + a["norm_bias"])
    after = cache.copy()
    if "head" in a:
        logits = _untiled(a["head"][None])[0] @ last * a["head_scales"]
    else:
        logits = a["wte"] @ last
    after[:, :, position] = seen[:, :, position].reshape(*cache.shape[:2], -1)
    return keep(logits)[None], after


def _untiled(weight: Array) -> Array:
    """Tiles of rows and columns (L, I, W, R, D) as (L, I R, W D)."""
    layers, tiles, across, rows, columns = weight.shape
    return weight.swapaxes(2, 3).reshape(layers, tiles * rows, across * columns)
