"""Products of matrices."""

from __future__ import annotations

import numpy as np

from .arrays import F64, Array, f64
from .rows import gelu


def linear(x: Array, weight: Array, bias: Array) -> F64:
    out = f64(x) @ f64(weight)  # (M, K) @ (K, N)
    out += f64(bias)  # in place: memory for large results takes longer than the sum
    return out


def linear_gelu(x: Array, weight: Array, bias: Array) -> F64:
    return gelu(linear(x, weight, bias))


def linear_residual(x: Array, weight: Array, bias: Array, residual: Array) -> F64:
    out = linear(x, weight, bias)
    out += f64(residual)
    return out


def linear_split_k(x: Array, weight: Array, partial: Array) -> F64:
    """The product, split along K into as many parts as `partial` has."""
    steps = (x.shape[1] + 63) // 64
    size = 64 * ((steps + len(partial) - 1) // len(partial))  # columns of a part: whole steps of 64
    parts = [slice(z * size, (z + 1) * size) for z in range(len(partial))]
    return np.stack([f64(x[:, part]) @ f64(weight[part]) for part in parts])  # (Z, M, N)


def logits(x: Array, weight: Array) -> F64:
    return f64(x) @ f64(weight).T  # (M, C) @ (C, V)


def matmul(x: Array, weight: Array) -> F64:
    return f64(x) @ f64(weight)  # (M, K) @ (K, N)


def matmul_residual(x: Array, weight: Array, residual: Array) -> F64:
    return f64(residual) + matmul(x, weight)


def silu(x: Array) -> F64:
    """x / (1 + e^-x), as x (1 + tanh(x / 2)) / 2, which does not overflow."""
    half = 0.5 * f64(x)
    return half + half * np.tanh(half)


def swiglu(x: Array, gate: Array, up: Array) -> F64:
    return silu(matmul(x, gate)) * matmul(x, up)
