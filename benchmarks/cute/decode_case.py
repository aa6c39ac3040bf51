"""Random weights for `kernels_cute/decode/step.py`, and the step in float64.

The weights are as gpt/fold.py leaves them: what is added to the residual stream has a mean of 0, and the norms within
the layers have neither gain nor shift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BF16 = ml_dtypes.bfloat16
NAMES = (
    "qkv", "proj", "fc", "out", "qkv_bias", "proj_bias", "fc_bias", "out_bias", "tokens", "places", "keys",
    "values", "gain", "shift", "state", "launches", "sums", "logits", "errors",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """`arrays`: of the kernel, each with its own shape, in the kernel's order."""

    layers: int
    width: int
    positions: int
    vocabulary: int
    arrays: dict[str, Array]

    @property
    def heads(self) -> int:
        return self.width // 64


def make(step: Any, *, token: int, position: int, seed: int = 0) -> Case:
    """Weights of a `Step`, a cache that is filled up to a position, and a token."""
    rng = np.random.default_rng(seed)
    layers, width, places, tokens = step.layers, step.width, step.positions, step.vocabulary

    def some(scale: float, *shape: int, centred: bool = False) -> Array:
        made = rng.standard_normal(shape, np.float32) * np.float32(scale)
        return (made - made.mean(-1, keepdims=True) if centred else made).astype(BF16)

    into, back = width**-0.5, (4 * width) ** -0.5
    proj = some(into, layers, width, width, centred=True)  # (L, K, C)
    heads = width // 64
    blocks = proj.reshape(layers, heads, 64, 8, width // 8).transpose(0, 1, 3, 4, 2)  # (L, H, 8, C / 8, 64)
    keys, values = (some(scale, layers, heads, places, 64) for scale in (1.0, 1.0))
    keys[:, :, position:], values[:, :, position:] = 0, 0
    made = {
        "qkv": some(1.5 * into, layers, 3, width, width), "proj": np.ascontiguousarray(blocks),
        "fc": some(into, layers, 4 * width, width), "out": some(back, layers, 4 * width, width, centred=True),
        "qkv_bias": some(0.1, layers, 3 * width), "proj_bias": some(0.1, layers, width, centred=True),
        "fc_bias": some(0.1, layers, 4 * width), "out_bias": some(0.1, layers, width, centred=True),
        "tokens": some(1.0, tokens, width), "places": some(0.3, places, width), "keys": keys, "values": values,
        "gain": (1 + 0.1 * rng.standard_normal(width)).astype(BF16), "shift": some(0.1, width),
        "state": np.array([token, position], np.int32), "launches": np.zeros(step.blocks, np.int32),
        "sums": np.zeros(step.words, np.int64), "logits": np.zeros(tokens, np.float32),
        "errors": np.full(step.blocks * step.warps, -1, np.int32),
    }  # fmt: skip
    return Case(layers, width, places, tokens, {name: made[name] for name in NAMES})


def reference(case: Case, dtype: Any = np.float64) -> dict[str, Array]:
    """`logits` (V), and the new `keys`, `values` (L, H, 64), without any rounding to bf16."""
    a, heads = case.arrays, case.heads
    token, position = (int(number) for number in a["state"])

    def of(name: str, layer: int) -> Array:
        return a[name][layer].astype(dtype)

    x = a["tokens"][token].astype(dtype) + a["places"][position].astype(dtype)
    x = x - x.mean()
    new = {"keys": [], "values": []}
    for layer in range(case.layers):
        q, k, v = (of("qkv", layer) @ (x * _scale(x)) + of("qkv_bias", layer).reshape(3, -1)).reshape(3, heads, 64)
        new["keys"].append(k)
        new["values"].append(v)
        keys, values = (
            np.concatenate([of(name, layer)[:, :position], one[:, None]], axis=1)
            for name, one in (("keys", k), ("values", v))
        )
        scores = np.einsum("hd,hpd->hp", q, keys) / 8
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hp,hpd->hd", weights / weights.sum(-1, keepdims=True), values)
        x = x + np.einsum("hrck,hk->rc", of("proj", layer), mixed).reshape(-1) + of("proj_bias", layer)
        hidden = _gelu(of("fc", layer) @ (x * _scale(x)) + of("fc_bias", layer))
        x = x + hidden @ of("out", layer) + of("out_bias", layer)
    x = x * _scale(x) * a["gain"].astype(dtype) + a["shift"].astype(dtype)
    return {"logits": a["tokens"].astype(dtype) @ x, **{name: np.stack(rows) for name, rows in new.items()}}


def _scale(x: Array) -> Array:
    return 1 / np.sqrt((x * x).mean() + 1e-5)


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))
