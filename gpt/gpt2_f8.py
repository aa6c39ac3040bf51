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
WIDEST = 2048  # the most columns that layernorm_f8 takes
FACTORS = "mlp.factors"  # what the hidden layer is multiplied by, (4C), so that no number of it is beyond 448


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
    for layer in range(config.n_layer):
        step = hidden_step(config, weights, layer)
        stored[f"h.{layer}.{FACTORS}"] = np.full(config.ffn, 1 / step, np.float32)
        scale = f"h.{layer}.mlp.c_proj{quantize.SCALE}"
        stored[scale] = stored[scale] * np.float32(step)
    return {name: each.reshape(-1) if name.endswith(quantize.SCALE) else each for name, each in stored.items()}


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
    return float(2.0 ** np.ceil(np.log2((most + np.abs(bias).max()) / quantize.LARGEST)))


class GPT2InF8(GPT2):
    """The layers as the paper has them, each product in 8 bits."""

    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        del rows
        x, narrow, wide = work.x, work.narrow, work.wide
        self.launch(
            "embedding", tokens=work.tokens, positions=work.positions, wte=self._weights["wte.weight"],
            wpe=self._weights["wpe.weight"], out=x,
        )  # fmt: skip
        for layer in range(self._config.n_layer):
            norm, product = self._layer_weights(layer), self._products(layer, work.scales)
            self._norm(work, norm("ln_1"))  # narrow (N, C), scales (N)
            self.launch("linear_f8", x=narrow, **product("attn.c_attn"), out=work.qkv)  # (N, 3C)
            attend(layer, work)  # work.attended (N, C)
            self.launch("quantize_rows", x=work.attended, out=narrow, scales=work.scales)  # (N, C), (N)
            self.launch("linear_residual_f8", x=narrow, **product("attn.c_proj"), residual=x, out=x)  # (N, C)
            self._norm(work, norm("ln_2"))  # narrow (N, C), scales (N)
            hidden, last = product("mlp.c_fc"), product("mlp.c_proj") | {"x_scales": work.ones}
            factors = self._weights[f"h.{layer}.{FACTORS}"]  # (4C)
            self.launch("linear_gelu_f8_to_f8", x=narrow, **hidden, factors=factors, out=wide)  # (N, 4C)
            self.launch("linear_residual_f8", x=wide, **last, residual=x, out=x)  # (N, C)
        return False

    def _norm(self, work: Workspace, named: Mapping[str, DeviceBuffer]) -> None:
        """A norm whose result is rounded: x -> narrow (N, C) and scales (N)."""
        eps = self._config.eps
        if self._config.n_embd <= WIDEST:
            self.launch("layernorm_f8", x=work.x, **named, out=work.narrow, scales=work.scales, eps=eps)
            return
        self.launch("layernorm", x=work.x, **named, out=work.normed, eps=eps)  # (N, C)
        self.launch("quantize_rows", x=work.normed, out=work.narrow, scales=work.scales)

    def _products(self, layer: int, scales: DeviceBuffer) -> Callable[[str], dict[str, DeviceBuffer]]:
        """A product's weight, scales and bias, with the scales of the rows that it takes."""

        def product(name: str) -> dict[str, DeviceBuffer]:
            weight = f"h.{layer}.{name}.weight"
            own = self._named(f"h.{layer}.{name}")
            return {"x_scales": scales, "weight_scales": self._weights[quantize.scale_of(weight)], **own}

        return product
