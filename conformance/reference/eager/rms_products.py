"""Products that give, or take, the sums of squares of their rows."""

from __future__ import annotations

import numpy as np

from .. import float64
from .rounding import F32, Array, f32, product, rounded, tf32
from .rows import gelu


def linear_residual_squares(
    x: Array, weight: Array, bias: Array, residual: Array, squares: Array, *, dtype: str
) -> tuple[Array, F32]:
    if dtype == "tf32":
        x, weight = tf32(x), tf32(weight)
    whole = float64.linear_residual_squares(f32(x), f32(weight), f32(bias), f32(residual), squares)
    return rounded(whole[0], dtype), f32(whole[1])


def rms_linear(x: Array, squares: Array, weight: Array, bias: Array, eps: float, *, dtype: str) -> Array:
    out = product(x, weight, dtype)
    out /= root_mean_square(squares, x, eps)
    out += f32(bias)
    return rounded(out, dtype)


def root_mean_square(squares: Array, x: Array, eps: float) -> F32:
    """Of each row of x (M, K): (M, 1)."""
    mean_square = f32(squares).sum(axis=0)[: len(x), None] / np.float32(x.shape[1])
    return np.sqrt(mean_square + np.float32(eps))


def rms_linear_gelu(x: Array, squares: Array, weight: Array, bias: Array, eps: float, *, dtype: str) -> Array:
    return gelu(rms_linear(x, squares, weight, bias, eps, dtype=dtype), dtype=dtype)


def rms_swiglu(x: Array, squares: Array, gate: Array, up: Array, eps: float, *, dtype: str) -> Array:
    """As swiglu; of the products, which a framework makes of normed rows, the norm is rounded with them."""
    root = root_mean_square(squares, x, eps)
    gated = rounded(product(x, gate, dtype) / root, dtype)
    half = np.float32(0.5) * f32(gated)
    silu = rounded(half + half * np.tanh(half), dtype)
    return rounded(f32(silu) * f32(rounded(product(x, up, dtype) / root, dtype)), dtype)
