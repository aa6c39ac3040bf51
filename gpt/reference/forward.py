"""The whole forward pass in numpy: what the model's logits are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.reference import eager as eager_ops
from conformance.reference import float64 as float64_ops

from ..config import GPTConfig
from ..parameters import quantize
from ..parameters.spelling import HEAD
from ..parameters.threads import in_threads
from . import eight_bits as reference_8bits
from . import llama as reference_llama

Array = NDArray[Any]
ROWS = 256  # of a product that has a thread of its own: a long pass is the longest job of the matrix
HEADS = 3  # of attention, as ROWS
LAYERS = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")


def float64(config: GPTConfig, weights: Mapping[str, Array], tokens: Array) -> NDArray[np.float64]:
    """Logits (B, T, V) at every position of tokens (B, T), every op in float64: the oracle. Of a quantized model: with
    the weights that its 8 bits stand for, and no activation rounded."""
    if quantize.is_quantized(weights):
        weights = quantize.dequantized(weights)
    return forward(float64_ops, config, weights, tokens)


def eager(config: GPTConfig, weights: Mapping[str, Array], tokens: Array, *, dtype: str) -> Array:
    """Logits (B, T, V) at every position of tokens (B, T), every op as an eager framework computes it in `dtype`;
    the products of a quantized model with activations rounded to 8 bits, unless only its weights are."""
    if quantize.is_quantized(weights) and config.weights_only:
        weights = quantize.dequantized(weights)
    if quantize.is_quantized(weights):
        return forward(reference_8bits, config, reference_8bits.paired(weights), tokens, dtype=dtype)
    return forward(eager_ops, config, weights, tokens, dtype=dtype)


def forward(ops: Any, config: GPTConfig, weights: Mapping[str, Any], tokens: Array, **options: str) -> NDArray[Any]:
    """Logits (B, T, V), computed by `ops`: functions by the names of the ops, which get `options`."""
    if config.family == "llama":
        return reference_llama.forward(ops, config, weights, tokens, None, **options)

    def op(name: str) -> Any:
        return partial(getattr(ops, name), **options)

    batch, length = tokens.shape
    c, h, d = config.n_embd, config.n_head, config.head_size
    x = op("embedding")(tokens, np.arange(length), weights["wte.weight"], weights["wpe.weight"])  # (B, T, C)
    for layer in range(config.n_layer):
        w = {name: (weights[f"h.{layer}.{name}.weight"], weights[f"h.{layer}.{name}.bias"]) for name in LAYERS}
        normed = op("layernorm")(x, *w["ln_1"], config.eps)
        qkv = by_rows(op("linear"), normed, *w["attn.c_attn"]).reshape(batch, length, 3, h, d)
        y = by_heads(op("attention"), *(qkv[:, :, i] for i in range(3)), scale=d**-0.5).reshape(batch, length, c)
        x = by_rows(op("linear_residual"), y, *w["attn.c_proj"], residual=x)
        normed = op("layernorm")(x, *w["ln_2"], config.eps)
        hidden = by_rows(op("linear_gelu"), normed, *w["mlp.c_fc"])  # (B, T, 4C)
        x = by_rows(op("linear_residual"), hidden, *w["mlp.c_proj"], residual=x)
    x = op("layernorm")(x, weights["ln_f.weight"], weights["ln_f.bias"], config.eps)
    return by_rows(op("logits"), x, weights.get(HEAD, weights["wte.weight"]))


def by_heads(attention: Callable[..., Array], *heads: Array, scale: float) -> Array:
    """Attention (B, T, H, D) of queries, keys and values, for some heads beside others."""
    parts = range(0, heads[0].shape[2], HEADS)
    made = in_threads(lambda h: attention(*(each[:, :, h : h + HEADS] for each in heads), scale), parts)
    return np.concatenate(made, axis=2)


def by_rows(product: Callable[..., Array], x: Array, *weights: Any, **rows: Array) -> Array:
    """A product of x (B, T, K), and of what else has its rows, as (B, T, N), computed in parts beside one another."""
    stops = range(ROWS, x.shape[0] * x.shape[1], ROWS)
    parts = {name: np.split(array.reshape(-1, array.shape[-1]), stops) for name, array in {"x": x, **rows}.items()}

    def part(number: int) -> Array:
        mine = {name: of[number] for name, of in parts.items()}
        return product(mine.pop("x"), *weights, **mine)

    made = in_threads(part, range(len(stops) + 1))
    return np.concatenate(made).reshape(*x.shape[:2], -1)
