"""GPT-2 with its products in 8-bit floats. Two results are not rounded row by row: the hidden layer is divided by one
number, and so are attention's values, so that attention itself can round what it makes. Floats of e4m3 have room for
smaller ones. A norm's rows have a few numbers far larger than all others: a scale of their own makes the largest exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.runtime import DeviceBuffer

from ..config import GPTConfig
from ..parameters import quantize
from ..parameters.weights import Weights
from ..passes.kv_cache import Cached, CachedF8
from ..passes.layers import AttendHere
from ..passes.workspace import Workspace
from .gpt2_8bits import FEW, GPT2In8Bits, Product
from .weights_8bits import gpt2_weights

FACTORS = "mlp.factors"  # what the hidden layer is multiplied by, (4C), so that no number of it is beyond 448
STEPPED = "mlp.c_proj.stepped_scale"  # (C)


def device_weights(
    config: GPTConfig, weights: Weights, dtype: str, vocabulary: int, *, folded: bool
) -> Mapping[str, NDArray[Any]]:
    """As in weights_8bits.py, with the factors of the hidden layers, and the scales that take these back. Values are
    divided by their step, which is a power of two: so are their scales and biases; attn.c_proj takes it back."""
    stored = dict(gpt2_weights(config, weights, dtype, vocabulary, folded=folded))
    for layer in range(config.n_layer):
        prefix = f"h.{layer}."
        step = hidden_step(config, weights, layer)
        stored[prefix + FACTORS] = np.full(config.ffn, 1 / step, np.float32)
        stored[prefix + STEPPED] = stored[f"{prefix}mlp.c_proj{quantize.SCALE}"] * np.float32(step)
        step = value_step(config, weights, layer)
        for name in (f"attn.c_attn{quantize.SCALE}", "attn.c_attn.bias"):
            parts = stored[prefix + name].copy()  # (3C)
            parts[2 * config.n_embd :] *= parts.dtype.type(1 / step)
            stored[prefix + name] = parts
        stored[f"{prefix}attn.c_proj{quantize.SCALE}"] = stored[f"{prefix}attn.c_proj{quantize.SCALE}"] * np.float32(
            step
        )
    return stored


def hidden_step(config: GPTConfig, weights: Mapping[str, NDArray[Any]], layer: int) -> float:
    """The power of two that the hidden layer of every text is divided by to be below 448. GELU makes no number
    larger."""
    return _step(config, weights, f"h.{layer}.", "ln_2", "mlp.c_fc", 0)


def value_step(config: GPTConfig, weights: Mapping[str, NDArray[Any]], layer: int) -> float:
    """The same of attention's values, the last third of a product. Their mean is no larger than the largest."""
    return _step(config, weights, f"h.{layer}.", "ln_1", "attn.c_attn", 2 * config.n_embd)


def _step(
    config: GPTConfig, weights: Mapping[str, NDArray[Any]], prefix: str, norm: str, product: str, first: int
) -> float:  # fmt: skip
    """Of a norm's product, from output `first` on.

    A row that comes out of a norm is x = gain * n + shift, where n has C numbers whose squares add up to C at most. So
    no element of x @ w is beyond max|gain| sqrt(C) |w| + |shift| |w|, where |w| is the length of a column (Cauchy and
    Schwarz). The rounding of x to 8 bits makes a number larger by 1/16, and a very small one by a part of the largest;
    1/8 is allowed.
    """
    gain, shift, bias = (
        np.asarray(weights[prefix + name], np.float64) for name in (f"{norm}.weight", f"{norm}.bias", f"{product}.bias")
    )
    name = f"{prefix}{product}.weight"
    weight = (weights[name].astype(np.float64) * weights[quantize.scale_of(name)])[first:]  # (N, C)
    longest = np.linalg.norm(weight, axis=1).max()
    most = 9 / 8 * (np.abs(gain).max() * np.sqrt(config.n_embd) + np.linalg.norm(shift)) * longest
    most += np.abs(bias[first:]).max()
    return float(2.0 ** np.ceil(np.log2(max(most, quantize.LEAST) / quantize.F8.largest)))


class GPT2InF8(GPT2In8Bits):
    """With floats."""

    kind = "f8"
    round_rows = "quantize_rows"
    _is_rounded = False  # what `attend` says to `_attended`, which called it

    def attend(self, layer: int, work: Workspace, starts: DeviceBuffer, length: int) -> None:
        if work.qkv.shape[0] <= FEW:
            super().attend(layer, work, starts, length)
            return
        self._round_attention(work, length, *self._heads(work, length))

    def attend_cached(
        self, layer: int, work: Workspace, cached: Cached | CachedF8, starts: DeviceBuffer, length: int, end: int
    ) -> None:
        if work.qkv.shape[0] <= FEW:
            super().attend_cached(layer, work, cached, starts, length, end)
            return
        q, k, v = self._heads(work, length)
        self._append(k, v, cached, starts)
        self._round_attention(work, length, q, *self.seen(work, cached, end))

    def _round_attention(
        self, work: Workspace, length: int, q: DeviceBuffer, k: DeviceBuffer, v: DeviceBuffer
    ) -> None:  # fmt: skip
        """Attention whose result is in 8 bits: work.narrow (N, C)."""
        out = work.narrow.reshape(-1, length, self._config.n_head, self._config.head_size)
        self.launch("attention_to_f8", q=q, k=k, v=v, out=out, scale=self._scale)
        self._is_rounded = True

    def _attended(self, layer: int, work: Workspace, attend: AttendHere) -> DeviceBuffer:
        self._is_rounded = False
        attend(layer, work)  # work.narrow, or work.attended (N, C) of a token of each sequence and of a cache in pages
        if self._is_rounded:
            return work.ones
        self.launch(self.round_rows, x=work.attended, out=work.narrow, scales=work.scales)
        return work.scales

    def _mlp(self, work: Workspace, layer: int, product: Product) -> None:
        factors = self._weights[f"h.{layer}.{FACTORS}"]
        last = product("mlp.c_proj") | {"x_scales": work.ones, "weight_scales": self._weights[f"h.{layer}.{STEPPED}"]}
        self.launch(
            "linear_gelu_f8_to_f8", x=work.narrow, **product("mlp.c_fc"), factors=factors, out=work.wide
        )  # (N, 4C)
        self._add(work.x, work.wide, last)
