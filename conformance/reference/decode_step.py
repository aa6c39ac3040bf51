"""The ops `decode_step`, a whole step of GPT-2, in any precision: float64 and eager say in which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    ((logits, *cached),) = _steps(arrays, [arrays["cache"]], eps, wide=wide, keep=keep)
    return (logits, *cached)


@dataclass
class _Text:
    """A sequence: its token's position, the keys and values that attention sees, the cache after the append and its
    scales, and the row so far."""

    position: int
    seen: Array
    after: Array
    scales: Array | None
    x: Array


def _steps(
    arrays: Mapping[str, Array], caches: Sequence[Array], eps: float, *, wide: type[np.floating[Any]],
    keep: Callable[[Array], Array],
) -> list[tuple[Array, ...]]:  # fmt: skip
    """`decode_step` of several texts, each with a cache. All go through a layer before the next, whose weights are
    widened once for all."""
    large = ("qkv", "proj", "fc", "out", "wte", "head", "cache")  # of these one layer, or one row, at a time
    a = {name: array.astype(wide) for name, array in arrays.items() if name not in large}
    scaled = "qkv_scales" in a  # weights in 8 bits, from which no norm was taken
    tokens, positions = arrays["tokens"].astype(int), arrays["positions"].astype(int)
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

    def of_norm(name: str, layer: int, weight: Array, x: Array) -> Array:
        """The product with qkv or fc of a norm of x."""
        bias = a[f"{name}_bias"][layer]
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

    def embedded(token: int, position: int, cache: Array) -> _Text:
        after, scales = cache.astype(wide), a.get("cache_scales")
        seen = after[:, :, : position + 1].reshape(*cache.shape[:2], -1, heads, size)  # (L, 2, S, H, D)
        if scales is not None:
            seen = seen * scales[..., : position + 1].swapaxes(2, 3)[..., None]
        x = widened(arrays["wte"][token], wide) + a["wpe"][position]
        return _Text(position, seen, after, scales, keep(x - x.mean()))

    def attended(text: _Text, layer: int, weight: Array) -> Array:
        """The heads (H, D) of attention, after the append."""
        q, *new = keep(of_norm("qkv", layer, weight, text.x)).reshape(3, heads, size)
        if text.scales is not None:
            within, text.scales[layer, :, :, text.position] = _within(np.array(new))
            text.after[layer, :, text.position] = within.reshape(2, -1)
            new = within.astype(F8.dtype).astype(wide) * text.scales[layer, :, :, text.position, None]
        else:
            text.after[layer, :, text.position] = np.reshape(new, (2, -1))
        text.seen[layer, :, text.position] = new
        keys, values = text.seen[layer]
        scores = np.einsum("hd,phd->hp", q, keys) / wide(np.sqrt(size))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return keep(np.einsum("hp,phd->hd", weights / weights.sum(-1, keepdims=True), values))

    texts = [embedded(*each) for each in zip(tokens, positions, caches, strict=True)]
    for layer in range(layers):
        qkv, proj, fc, out = (weight_of(name, layer) for name in ("qkv", "proj", "fc", "out"))
        for text in texts:
            mixed = attended(text, layer, qkv)
            x = keep(text.x + added("proj", layer, np.einsum("hcd,hd->c", proj, mixed)))
            hidden = of_norm("fc", layer, fc, x)
            hidden = 0.5 * hidden * (1 + np.tanh(wide(np.sqrt(2 / np.pi)) * (hidden + wide(0.044715) * hidden**3)))
            text.x = keep(x + added("out", layer, keep(hidden) @ out))
    head = arrays.get("head", arrays["wte"])
    head = widened(_untiled(head) if "head_scales" in arrays else head, wide)

    def ended(text: _Text) -> tuple[Array, ...]:
        last = text.x - text.x.mean() if scaled else text.x
        logits = head @ keep(by_rms(last) * a["norm_weight"] + a["norm_bias"])
        logits = keep(logits * a["head_scales"] if "head_scales" in arrays else logits)[None]
        return (logits, text.after) if text.scales is None else (logits, text.after, text.scales)

    return [ended(text) for text in texts]


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
    made = _steps(arrays, list(np.moveaxis(arrays["cache"], 2, 0)), eps, wide=wide, keep=keep)
    logits, caches = zip(*made, strict=True)
    return np.concatenate(logits), np.stack(caches, 2)


def _untiled(weight: Array) -> Array:
    """Tiles of rows and columns (I, W, R, D) as (I R, W D)."""
    tiles, across, rows, columns = weight.shape
    return weight.swapaxes(1, 2).reshape(tiles * rows, across * columns)


def _within(rows: Array) -> tuple[Array, Array]:
    """Rows divided by their scales, as quantize_rows rounds them next, and the scales."""
    least = np.finfo(np.float32).smallest_normal
    scales = np.maximum(np.abs(rows).max(axis=-1) / rows.dtype.type(LARGEST), least)
    return rows * (rows.dtype.type(1) / scales[..., None]), scales
