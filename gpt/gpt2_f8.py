"""GPT-2 with its products in 8-bit floats (see quantize.py): before each product its rows are rounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer

from . import quantize
from .config import GPTConfig
from .gpt2 import GPT2
from .layers import AttendHere
from .weights import Weights
from .workspace import Workspace

DTYPE = "bf16"  # of what is not in 8 bits


def device_weights(
    config: GPTConfig, weights: Weights, dtype: str, vocabulary: int, *, folded: bool
) -> Mapping[str, NDArray[Any]]:
    """The weights as they lie on the device: those of products (out, in) in 8 bits with scales (out,), the others in
    the storage of `dtype`; the vocabulary is padded with zeros. Raises UsageError for another dtype than bf16."""
    del folded
    if dtype != DTYPE:
        raise UsageError(f"a quantized model computes in {DTYPE} beside its products, not in {dtype}")
    stored = dict(weights.astype(dtype).items())
    stored["wte.weight"] = np.pad(stored["wte.weight"], ((0, vocabulary - config.vocab_size), (0, 0)))  # (padded V, C)
    return {name: each.reshape(-1) if name.endswith(quantize.SCALE) else each for name, each in stored.items()}


class GPT2InF8(GPT2):
    """The layers as the paper has them, each product in 8 bits."""

    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        del rows
        x, normed, eps, narrow, wide = work.x, work.normed, self._config.eps, work.narrow, work.wide
        self.launch(
            "embedding", tokens=work.tokens, positions=work.positions, wte=self._weights["wte.weight"],
            wpe=self._weights["wpe.weight"], out=x,
        )  # fmt: skip
        for layer in range(self._config.n_layer):
            norm, product = self._layer_weights(layer), self._products(layer, work.scales)
            self.launch("layernorm", x=x, **norm("ln_1"), out=normed, eps=eps)  # (N, C)
            self.launch("quantize_rows", x=normed, out=narrow, scales=work.scales)  # (N, C), (N)
            self.launch("linear_f8", x=narrow, **product("attn.c_attn"), out=work.qkv)  # (N, 3C)
            attend(layer, work)  # work.attended (N, C)
            self.launch("quantize_rows", x=work.attended, out=narrow, scales=work.scales)  # (N, C), (N)
            self.launch("linear_residual_f8", x=narrow, **product("attn.c_proj"), residual=x, out=x)  # (N, C)
            self.launch("layernorm", x=x, **norm("ln_2"), out=normed, eps=eps)  # (N, C)
            self.launch("quantize_rows", x=normed, out=narrow, scales=work.scales)  # (N, C), (N)
            self.launch("linear_gelu_f8", x=narrow, **product("mlp.c_fc"), out=work.hidden)  # (N, 4C)
            self.launch("quantize_rows", x=work.hidden, out=wide, scales=work.scales)  # (N, 4C), (N)
            self.launch("linear_residual_f8", x=wide, **product("mlp.c_proj"), residual=x, out=x)  # (N, C)
        return False

    def _products(self, layer: int, scales: DeviceBuffer) -> Callable[[str], dict[str, DeviceBuffer]]:
        """A product's weight, scales and bias, with the scales of the rows that it takes."""

        def product(name: str) -> dict[str, DeviceBuffer]:
            weight = f"h.{layer}.{name}.weight"
            own = self._named(f"h.{layer}.{name}")
            return {"x_scales": scales, "weight_scales": self._weights[quantize.scale_of(weight)], **own}

        return product
