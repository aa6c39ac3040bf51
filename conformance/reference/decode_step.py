"""The ops `decode_step`, a whole step of GPT-2, in any precision: float64 and eager say in which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .widened import F8, widened

Array = NDArray[Any]
LARGEST = 448.0  # of f8E4M3FN


def decode_step(
    arrays: Mapping[str, Array], eps: float, *, wide: type[np.floating[Any]], keep: Callable[[Array], Array]
) -> tuple[Array, ...]:
    """Logits (1, V) and the cache after the append, in the dtype `wide`, and its scales if it is in 8 bits: there the
    new numbers come without the rounding of their last step. `arrays`: by the op's names. `keep`: rounds what a launch
    would have left in memory."""
    large = ("qkv", "proj", "fc", "out", "wte", "head")  # of these one layer, or one row, at a time
    a = {name: array.astype(wide) for name, array in arrays.items() if name not in large}
    scaled = "qkv_scales" in a  # weights in 8 bits, from which no norm was taken
    (token,), (position,) = arrays["tokens"].astype(int), arrays["positions"].astype(int)
    cache = a["cache"]
    layers, heads, columns, size = arrays["proj"].shape

    def weight_of(name: str, layer: int) -> Array:
        """A layer's weight: (outputs, inputs), but (H, C, D) that of proj and (F, C) that of out."""
        weight = arrays[name][layer]
        if name == "out":
            weight = weight.swapaxes(1, 2).reshape(-1, columns)
        elif scaled and name != "proj":
            weight = _untiled(weight)
        return widened(weight, wide)

    def by_rms(x: Array) -> Array:
        return x / np.sqrt((x * x).mean() + wide(eps))

    def of_norm(name: str, layer: int, x: Array) -> Array:
        """The product with qkv or fc of a norm of x."""
        weight, bias = weight_of(name, layer), a[f"{name}_bias"][layer]
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
    after, scales = cache.copy(), a.get("cache_scales")
    if scales is not None:
        seen = seen * scales[..., : position + 1].swapaxes(2, 3)[..., None]
    x = widened(arrays["wte"][token], wide) + a["wpe"][position]
    x = keep(x - x.mean())
    for layer in range(layers):
        q, *new = keep(of_norm("qkv", layer, x)).reshape(3, heads, size)
        if scales is not None:
            within, scales[layer, :, :, position] = _within(np.array(new))
            after[layer, :, position] = within.reshape(2, -1)
            new = within.astype(F8.dtype).astype(wide) * scales[layer, :, :, position, None]
        else:
            after[layer, :, position] = np.reshape(new, (2, -1))
        seen[layer, :, position] = new
        keys, values = seen[layer]
        scores = np.einsum("hd,phd->hp", q, keys) / wide(np.sqrt(size))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = keep(np.einsum("hp,phd->hd", weights / weights.sum(-1, keepdims=True), values))
        x = keep(x + added("proj", layer, np.einsum("hcd,hd->c", weight_of("proj", layer), mixed)))
        hidden = of_norm("fc", layer, x)
        hidden = keep(0.5 * hidden * (1 + np.tanh(wide(np.sqrt(2 / np.pi)) * (hidden + wide(0.044715) * hidden**3))))
        x = keep(x + added("out", layer, hidden @ weight_of("out", layer)))
    last = keep(by_rms(x - x.mean() if scaled else x) * a["norm_weight"] + a["norm_bias"])
    if "head_scales" in arrays:
        logits = widened(_untiled(arrays["head"]), wide) @ last * a["head_scales"]
    else:
        logits = widened(arrays.get("head", arrays["wte"]), wide) @ last
    return (keep(logits)[None], after) if scales is None else (keep(logits)[None], after, scales)


def decode_step_of_ranks(
    arrays: Mapping[str, Array], rank: int, eps: float, *, wide: type[np.floating[Any]],
    keep: Callable[[Array], Array],
) -> tuple[Array, ...]:  # fmt: skip
    """The same of a model that R ranks share: what one of them makes, logits (1, K) and its cache. `arrays`: what
    differs from rank to rank has the ranks as its first dimension; the cache of each rank begins with the same."""
    ranks = len(arrays["qkv"])
    whole = {**arrays, "head": arrays["head"][rank], "cache": np.concatenate([arrays["cache"]] * ranks, 3)}
    for name in ("qkv", "qkv_bias"):
        layers, outputs, *inputs = arrays[name].shape[1:]
        parts = arrays[name].reshape(ranks, layers, 3, outputs // 3, *inputs)
        whole[name] = np.moveaxis(parts, 0, 2).reshape(layers, ranks * outputs, *inputs)
    for name in ("proj", "fc", "fc_bias", "out"):
        whole[name] = np.concatenate(list(arrays[name]), 1)
    logits, after = decode_step(whole, eps, wide=wide, keep=keep)
    return logits, np.split(after, ranks, 3)[rank]


def decode_step_texts(
    arrays: Mapping[str, Array], eps: float, *, wide: type[np.floating[Any]], keep: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """The same of N sequences, each with a cache of its own: logits (N, V) and the caches (L, 2, N, P, C)."""
    of_text = list[tuple[Array, Array]]()
    for n in range(len(arrays["tokens"])):
        own = {"tokens": arrays["tokens"][n : n + 1], "positions": arrays["positions"][n : n + 1]}
        logits, cache = decode_step({**arrays, **own, "cache": arrays["cache"][:, :, n]}, eps, wide=wide, keep=keep)
        of_text.append((logits, cache))
    return np.concatenate([logits for logits, _ in of_text]), np.stack([cache for _, cache in of_text], 2)


def _untiled(weight: Array) -> Array:
    """Tiles of rows and columns (I, W, R, D) as (I R, W D)."""
    tiles, across, rows, columns = weight.shape
    return weight.swapaxes(1, 2).reshape(tiles * rows, across * columns)


def _within(rows: Array) -> tuple[Array, Array]:
    """Rows divided by their scales, as quantize_rows rounds them next, and the scales."""
    least = np.finfo(np.float32).smallest_normal
    scales = np.maximum(np.abs(rows).max(axis=-1) / rows.dtype.type(LARGEST), least)
    return rows * (rows.dtype.type(1) / scales[..., None]), scales
