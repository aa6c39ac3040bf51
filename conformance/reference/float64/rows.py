"""Ops that work row by row: norms, GELU and softmax."""

from __future__ import annotations

import numpy as np

from .arrays import F64, Array, f64, in_parts


def layernorm(x: Array, weight: Array, bias: Array, eps: float) -> F64:
    x = f64(x)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * f64(weight) + f64(bias)


def residual_layernorm(
    partial: Array, bias: Array, norm_weight: Array, norm_bias: Array, x: Array, eps: float
) -> tuple[F64, F64]:
    """x with the residual added, and its norm. `x` stays as it is."""
    total = f64(x) + f64(partial).sum(axis=0) + f64(bias)
    return total, layernorm(total, norm_weight, norm_bias, eps)


def gelu(x: Array) -> F64:
    return in_parts(lambda part: _gelu(f64(part)), x)


def _gelu(x: F64) -> F64:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)))


def softmax(x: Array) -> F64:
    x = f64(x)
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def rmsnorm(x: Array, weight: Array, eps: float) -> F64:
    x = f64(x)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * f64(weight)
