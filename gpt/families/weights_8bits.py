"""Models whose products have weights in 8 bits and rows in 16 (see quantize.py): a GPT-2 and a llama, each line an op,
as in gpt2.py and llama.py. For few rows reading the weights is most of the work, and here they are half as large;
nothing else is rounded. The stored numbers are used as they are: no norm is folded into them (see fold.py), which would
round them again. So of few rows the blocks of a product norm their rows themselves, where kernels are for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer

from ..config import GPTConfig
from ..parameters import quantize
from ..parameters.spelling import HEAD, HEAD_SCALE
from ..parameters.weights import Weights
from ..passes.layers import AttendHere
from ..passes.workspace import Workspace
from . import llama
from .gpt2 import GPT2
from .llama import NO_BIAS, NO_QKV_BIAS, Llama

DTYPE = "bf16"  # of what is not in 8 bits
HEAD_BIAS = "lm_head.bias"  # zeros, for a product that has one
Named = dict[str, DeviceBuffer]


def gpt2_weights(
    config: GPTConfig, weights: Weights, dtype: str, vocabulary: int, *, folded: bool
) -> Mapping[str, NDArray[Any]]:
    """The weights as they lie on the device: those of products (out, in) in 8 bits with scales (out,), the others in
    the storage of `dtype`; the vocabulary is padded with zeros. Raises UsageError for another dtype than bf16."""
    del folded
    check_dtype(dtype)
    stored = dict(weights.astype(dtype).items())
    padding = ((0, vocabulary - config.vocab_size), (0, 0))
    stored["wte.weight"] = np.pad(stored["wte.weight"], padding)  # (padded V, C)
    if quantize.has_head(stored):
        stored[HEAD] = np.pad(stored[HEAD], padding)  # (padded V, C)
        stored[HEAD_SCALE] = np.pad(stored[HEAD_SCALE], padding)  # (padded V, 1)
        stored[HEAD_BIAS] = np.zeros(vocabulary, stored["wte.weight"].dtype)
    return {name: each.reshape(-1) if name.endswith(quantize.SCALE) else each for name, each in stored.items()}


def llama_weights(
    config: GPTConfig, weights: Weights, dtype: str, vocabulary: int, *, folded: bool
) -> Mapping[str, NDArray[Any]]:
    """The same of a llama. Weights of queries, keys and values are joined, and so are their scales."""
    del folded
    check_dtype(dtype)
    stored = weights.astype(dtype)
    made = dict(llama.laid_out(config, stored, llama.vocabulary_rows(vocabulary)))
    found: dict[str, NDArray[Any]] = {}
    for name, parts in llama.joins(config):
        del made[name]
        found[name] = np.concatenate([stored[part + quantize.WEIGHT] for part in parts])  # (out, in)
        found[name + quantize.SCALE] = np.concatenate([stored[part + quantize.SCALE][:, 0] for part in parts])
    return {**found, **{name: make() for name, make in made.items()}, **llama.no_biases(config, stored)}


def check_dtype(dtype: str) -> None:
    """Raises UsageError for a dtype in which a quantized model does not compute."""
    if dtype != DTYPE:
        raise UsageError(f"a quantized model computes in {DTYPE} beside its products, not in {dtype}")


class GPT2On8Bits(GPT2):
    """`kind`: the suffix of its ops, `f8` or `i8`."""

    kind: ClassVar[str]

    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        x, kind = work.x, self.kind
        in_blocks, in_parts = self._plan.norms_in_blocks(rows), self._plan.parts(rows) > 0
        self.launch(
            "embedding", tokens=work.tokens, positions=work.positions, wte=self._weights["wte.weight"],
            wpe=self._weights["wpe.weight"], out=x,
        )  # fmt: skip
        ready = False  # True if work.normed is the norm of x
        for layer in range(self._config.n_layer):
            w, norm = self._over(layer), self._layer_weights(layer)
            if ready:
                self.launch(f"linear_weight_{kind}", x=work.normed, **w("attn.c_attn"), out=work.qkv)  # (N, 3C)
            else:
                self._norm_and("linear", work, norm("ln_1"), w("attn.c_attn"), work.qkv, in_blocks)  # (N, 3C)
            attend(layer, work)  # work.attended (N, C)
            self.launch(f"linear_residual_weight_{kind}", x=work.attended, **w("attn.c_proj"), residual=x, out=x)
            self._norm_and("linear_gelu", work, norm("ln_2"), w("mlp.c_fc"), work.hidden, in_blocks)  # (N, 4C)
            if in_parts:
                self._add_in_parts(work, layer)  # x and normed (N, C)
            else:
                self.launch(f"linear_residual_weight_{kind}", x=work.hidden, **w("mlp.c_proj"), residual=x, out=x)
            ready = in_parts
        return ready

    def _add_in_parts(self, work: Workspace, layer: int) -> None:
        over = {key: each for key, each in self._over(layer)("mlp.c_proj").items() if key != "bias"}
        self.launch(f"linear_split_k_weight_{self.kind}", x=work.hidden, **over, partial=work.partial)  # (Z, N, C)
        self._norm_of_sum(work, layer)

    def _norm_and(
        self, product: str, work: Workspace, norm: Named, over: Named, out: DeviceBuffer, in_blocks: bool
    ) -> None:  # fmt: skip
        """A product of x's norm: one launch if its blocks norm their rows, else two."""
        x, normed, eps = work.x, work.normed, self._config.eps
        if in_blocks:
            gains: Named = {"norm_weight": norm["weight"], "norm_bias": norm["bias"]}
            self.launch(f"layernorm_{product}_weight_{self.kind}", x=x, **gains, **over, out=out, eps=eps)
            return
        self.launch("layernorm", x=x, **norm, out=normed, eps=eps)  # (N, C)
        self.launch(f"{product}_weight_{self.kind}", x=normed, **over, out=out)

    def _over(self, layer: int) -> Callable[[str], Named]:
        """A function from a product's name to its weight, scales and bias."""

        def product(name: str) -> Named:
            full = f"h.{layer}.{name}"
            return {"weight_scales": self._weights[full + quantize.SCALE], **self._named(full)}

        return product


class LlamaOn8Bits(Llama):
    """`kind`: the suffix of its ops, `f8` or `i8`."""

    kind: ClassVar[str]

    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        del rows
        x, normed, hidden, weights, kind = work.x, work.normed, work.hidden, self._weights, self.kind
        self.launch("token_embedding", tokens=work.tokens, wte=weights[llama.EMBEDDING], out=x)  # (N, C)
        for layer in range(self._config.n_layer):
            at, mlp = f"layers.{layer}.self_attn", f"layers.{layer}.mlp"
            self._norm(f"layers.{layer}.input_layernorm", x, normed)  # (N, C)
            qkv = self._over(f"{at}.qkv", NO_QKV_BIAS)
            self.launch(f"linear_weight_{kind}", x=normed, **qkv, out=work.qkv)  # (N, G (Q + 2) D)
            attend(layer, work)  # work.attended (N, G Q D)
            self._add(x, work.attended, f"{at}.o_proj")  # x (N, C)
            self._norm(f"layers.{layer}.post_attention_layernorm", x, normed)  # (N, C)
            gate, up = f"{mlp}.gate_proj", f"{mlp}.up_proj"
            self.launch(
                f"swiglu_weight_{kind}", x=normed, gate=weights[gate], gate_scales=weights[gate + quantize.SCALE],
                up=weights[up], up_scales=weights[up + quantize.SCALE], out=hidden,
            )  # (N, F)  # fmt: skip
            self._add(x, hidden, f"{mlp}.down_proj")  # x (N, C)
        return False

    def _add(self, x: DeviceBuffer, read: DeviceBuffer, name: str) -> None:
        self.launch(f"linear_residual_weight_{self.kind}", x=read, **self._over(name, NO_BIAS), residual=x, out=x)

    def _over(self, name: str, bias: str) -> Named:
        """A product's weight, scales and bias."""
        weights = self._weights
        return {"weight": weights[name], "weight_scales": weights[name + quantize.SCALE], "bias": weights[bias]}


class GPT2OnF8(GPT2On8Bits):
    kind = "f8"


class GPT2OnI8(GPT2On8Bits):
    kind = "i8"


class LlamaOnF8(LlamaOn8Bits):
    kind = "f8"


class LlamaOnI8(LlamaOn8Bits):
    kind = "i8"
