"""Ops that work row by row: norms, GELU and softmax."""

from __future__ import annotations

import numpy as np

from .. import float64
from .rounding import F32, Array, f32, rounded


def layernorm(x: Array, weight: Array, bias: Array, eps: float, *, dtype: str) -> Array:
    x = f32(x)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return rounded(centred / np.sqrt(variance + np.float32(eps)) * f32(weight) + f32(bias), dtype)


def residual_layernorm(
    partial: Array, bias: Array, norm_weight: Array, norm_bias: Array, x: Array, eps: float, *, dtype: str
) -> tuple[Array, Array]:
    total = rounded(f32(x) + f32(partial).sum(axis=0) + f32(bias), dtype)
    return total, layernorm(total, norm_weight, norm_bias, eps, dtype=dtype)


def gelu(x: Array, *, dtype: str) -> Array:
    return float64.in_parts(lambda part: _gelu(f32(part), dtype), x)


def _gelu(x: F32, dtype: str) -> Array:
    inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
    return rounded(np.float32(0.5) * x * (np.float32(1) + np.tanh(inner)), dtype)


def softmax(x: Array, *, dtype: str) -> Array:
    x = f32(x)
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return rounded(weights / weights.sum(axis=-1, keepdims=True), dtype)


def rmsnorm(x: Array, weight: Array, eps: float, *, dtype: str) -> Array:
    x = f32(x)
    mean_square = (x * x).mean(axis=-1, keepdims=True)
    return rounded(x / np.sqrt(mean_square + np.float32(eps)) * f32(weight), dtype)
