"""GPT-2 with its products in 8-bit floats. The hidden layer is not rounded row by row: it is divided by one number, for
floats of e4m3 have room for smaller ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import quantize
from .config import GPTConfig
from .gpt2_8bits import GPT2In8Bits, Product
from .weights import Weights
from .weights_8bits import gpt2_weights
from .workspace import Workspace

FACTORS = "mlp.factors"  # what the hidden layer is multiplied by, (4C), so that no number of it is beyond 448
STEPPED = "mlp.c_proj.stepped_scale"  # (C)


def device_weights(
    config: GPTConfig, weights: Weights, dtype: str, vocabulary: int, *, folded: bool
) -> Mapping[str, NDArray[Any]]:
    """As in weights_8bits.py, with the factors of the hidden layers, and the scales that take these back."""
    stored = dict(gpt2_weights(config, weights, dtype, vocabulary, folded=folded))
    for layer in range(config.n_layer):
        step = hidden_step(config, weights, layer)
        stored[f"h.{layer}.{FACTORS}"] = np.full(config.ffn, 1 / step, np.float32)
        stored[f"h.{layer}.{STEPPED}"] = stored[f"h.{layer}.mlp.c_proj{quantize.SCALE}"] * np.float32(step)
    return stored


def hidden_step(config: GPTConfig, weights: Mapping[str, NDArray[Any]], layer: int) -> float:
    """The power of two that the hidden layer of every text is divided by to be below 448.

    A row that comes out of a norm is x = gain * n + shift, where n has C numbers whose squares add up to C at most. So
    no element of x @ w is beyond max|gain| sqrt(C) |w| + |shift| |w|, where |w| is the length of a column (Cauchy and
    Schwarz). The rounding of x to 8 bits makes a number larger by 1/16, and a very small one by a part of the largest;
    1/8 is allowed. GELU makes no number larger.
    """
    prefix = f"h.{layer}."
    gain, shift, bias = (
        np.asarray(weights[prefix + name], np.float64) for name in ("ln_2.weight", "ln_2.bias", "mlp.c_fc.bias")
    )
    name = f"{prefix}mlp.c_fc.weight"
    weight = weights[name].astype(np.float64) * weights[quantize.scale_of(name)]  # (4C, C)
    longest = np.linalg.norm(weight, axis=1).max()
    most = 9 / 8 * (np.abs(gain).max() * np.sqrt(config.n_embd) + np.linalg.norm(shift)) * longest
    return float(2.0 ** np.ceil(np.log2((most + np.abs(bias).max()) / quantize.F8.largest)))


class GPT2InF8(GPT2In8Bits):
    """With floats."""

    kind = "f8"
    round_rows = "quantize_rows"

    def _mlp(self, work: Workspace, layer: int, product: Product) -> None:
        factors = self._weights[f"h.{layer}.{FACTORS}"]
        last = product("mlp.c_proj") | {"x_scales": work.ones, "weight_scales": self._weights[f"h.{layer}.{STEPPED}"]}
        self.launch(
            "linear_gelu_f8_to_f8", x=work.narrow, **product("mlp.c_fc"), factors=factors, out=work.wide
        )  # (N, 4C)
        self._add(work.x, work.wide, last)
