"""The op `decode_step`, a whole step of GPT-2, in any precision: float64 and eager say in which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def decode_step(
    qkv: Array, proj: Array, fc: Array, out: Array, qkv_bias: Array, proj_bias: Array, fc_bias: Array,
    out_bias: Array, wte: Array, wpe: Array, norm_weight: Array, norm_bias: Array, tokens: Array, positions: Array,
    cache: Array, eps: float, *, wide: type[np.floating[Any]], keep: Callable[[Array], Array],
) -> tuple[Array, Array]:  # fmt: skip
    """Logits (1, V) and the cache after the append, in the dtype `wide`. `keep`: rounds what a launch would have left
    in memory."""

    def of(array: Array) -> Array:
        return array.astype(wide)

    def normed(x: Array) -> Array:
        return x / np.sqrt((x * x).mean() + wide(eps))

    (token,), (position,) = tokens.astype(int), positions.astype(int)
    heads, size = proj.shape[1], proj.shape[3]
    seen = of(cache[:, :, : position + 1]).reshape(*cache.shape[:2], -1, heads, size)  # (L, 2, S, H, D)
    x = of(wte[token]) + of(wpe[position])
    x = keep(x - x.mean())
    for layer in range(len(qkv)):
        q, *new = keep(of(qkv[layer]) @ keep(normed(x)) + of(qkv_bias[layer])).reshape(3, heads, size)
        seen[layer, :, position] = new
        keys, values = seen[layer]
        scores = np.einsum("hd,phd->hp", q, keys) / wide(np.sqrt(size))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = keep(np.einsum("hp,phd->hd", weights / weights.sum(-1, keepdims=True), values))
        x = keep(x + np.einsum("hcd,hd->c", of(proj[layer]), mixed) + of(proj_bias[layer]))
        hidden = of(fc[layer]) @ keep(normed(x)) + of(fc_bias[layer])
        hidden = keep(0.5 * hidden * (1 + np.tanh(wide(np.sqrt(2 / np.pi)) * (hidden + wide(0.044715) * hidden**3))))
        x = keep(x + hidden @ of(out[layer]) + of(out_bias[layer]))
    last = keep(normed(x) * of(norm_weight) + of(norm_bias))
    after = of(cache)
    after[:, :, position] = seen[:, :, position].reshape(*cache.shape[:2], -1)
    return keep(of(wte) @ last)[None], after
