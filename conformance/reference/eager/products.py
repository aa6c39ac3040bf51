"""Products of matrices."""

from __future__ import annotations

import numpy as np

from .. import float64
from .rounding import F32, Array, f32, product, rounded, tf32
from .rows import gelu


def linear(x: Array, weight: Array, bias: Array, *, dtype: str) -> Array:
    out = product(x, weight, dtype)
    out += f32(bias)
    return rounded(out, dtype)


def linear_gelu(x: Array, weight: Array, bias: Array, *, dtype: str) -> Array:
    return gelu(linear(x, weight, bias, dtype=dtype), dtype=dtype)


def linear_residual(x: Array, weight: Array, bias: Array, residual: Array, *, dtype: str) -> Array:
    return rounded(f32(residual) + f32(linear(x, weight, bias, dtype=dtype)), dtype)


def linear_split_k(x: Array, weight: Array, partial: Array, *, dtype: str) -> F32:
    if dtype == "tf32":
        x, weight = tf32(x), tf32(weight)
    return f32(float64.linear_split_k(f32(x), f32(weight), partial))


def logits(x: Array, weight: Array, *, dtype: str) -> Array:
    return rounded(product(x, weight.T, dtype), dtype)


def matmul(x: Array, weight: Array, *, dtype: str) -> Array:
    return rounded(product(x, weight, dtype), dtype)


def matmul_residual(x: Array, weight: Array, residual: Array, *, dtype: str) -> Array:
    return rounded(f32(residual) + f32(matmul(x, weight, dtype=dtype)), dtype)


def swiglu(x: Array, gate: Array, up: Array, *, dtype: str) -> Array:
    """As three ops of a framework: two products, and silu(gate) * up of what is rounded."""
    gated = f32(matmul(x, gate, dtype=dtype))
    half = np.float32(0.5) * gated
    silu = rounded(half + half * np.tanh(half), dtype)
    return rounded(f32(silu) * f32(matmul(x, up, dtype=dtype)), dtype)
