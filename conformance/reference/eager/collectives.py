"""What several GPUs launch together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import float64
from .causal_attention import attention
from .products import matmul, product
from .rms_products import rms_linear, rms_linear_gelu
from .rounding import F32, Array, f32, rounded
from .rows import residual_layernorm, rmsnorm


def _in_order(parts: Array) -> F32:
    """The sum over the first dimension in f32, one part after the other."""
    total = np.zeros(parts.shape[1:], np.float32)
    for part in parts:
        total = total + f32(part)
    return total


def all_reduce(parts: Array, rank: int, *, dtype: str) -> Array:
    del rank
    return rounded(_in_order(parts), dtype)


def all_reduce_two_shot(parts: Array, rank: int, *, dtype: str) -> Array:
    return all_reduce(parts, rank, dtype=dtype)


def all_reduce_layernorm(
    parts: Array, bias: Array, norm_weight: Array, norm_bias: Array, x: Array, rank: int, eps: float, *, dtype: str
) -> tuple[Array, Array]:
    del rank
    return residual_layernorm(f32(parts), bias, norm_weight, norm_bias, x, eps, dtype=dtype)


def all_reduce_rmsnorm(
    parts: Array, norm_weight: Array, x: Array, rank: int, eps: float, *, dtype: str
) -> tuple[Array, Array]:
    del rank
    total = rounded(f32(x) + f32(parts).sum(axis=0), dtype)
    return total, rmsnorm(total, norm_weight, eps, dtype=dtype)


def all_gather(parts: Array, rank: int, *, dtype: str) -> Array:
    del rank
    return rounded(parts, dtype)


def reduce_scatter(parts: Array, rank: int, *, dtype: str) -> Array:
    return rounded(_in_order(parts[:, rank]), dtype)


def broadcast(parts: Array, rank: int, root: int, *, dtype: str) -> Array:
    del rank
    return rounded(parts[root], dtype)


def next_token_of_ranks(
    values: Array, indices: Array, positions: Array, rank: int, width: int, *, dtype: str
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    del dtype
    return float64.next_token_of_ranks(values, indices, positions, rank, width)


def matmul_reduce_scatter(x: Array, weight: Array, rank: int, *, dtype: str) -> Array:
    """As a framework does it: each rank's product rounded, and their sum."""
    parts = [matmul(piece[rank], part, dtype=dtype) for piece, part in zip(x, weight, strict=True)]
    return all_reduce(np.stack(parts), rank, dtype=dtype)


def linear_to_ranks(
    x: Array, weight: Array, bias: Array, out: Array, squares: Array, rank: int, *, dtype: str
) -> tuple[Array, F32]:
    """As matmul_reduce_scatter, of which the sum is added to out in f32."""
    parts = [rounded(product(rows, part, dtype), dtype) for rows, part in zip(x, weight, strict=True)]
    count = len(out)
    pieces = [rows[s * len(rows) // count : (s + 1) * len(rows) // count] for s, rows in enumerate(out)]
    total = f32(np.concatenate(pieces)) + f32(bias) + _in_order(np.stack(parts))
    return (
        float64.own_piece(rounded(total, dtype), out[rank], rank, count),
        f32(float64.parts_of_squares(total, squares.shape[1])),
    )


def rms_linear_of_ranks(
    x: Array, squares: Array, weight: Array, bias: Array, eps: float, rank: int, sends: int, *, dtype: str
) -> Array:
    del sends
    return rms_linear(x[rank], squares[rank], weight[rank], bias[rank], eps, dtype=dtype)


def rms_linear_gelu_of_ranks(
    x: Array, squares: Array, weight: Array, bias: Array, eps: float, rank: int, sends: int, *, dtype: str
) -> Array:
    del sends
    return rms_linear_gelu(x[rank], squares[rank], weight[rank], bias[rank], eps, dtype=dtype)


def attention_to_ranks(
    q: Array, k: Array, v: Array, scale: float, rank: int, out: Array, *, dtype: str
) -> Array:  # fmt: skip
    heads = np.concatenate([attention(*each, scale, dtype=dtype) for each in zip(q, k, v, strict=True)], axis=2)
    return heads.reshape(out.shape)[rank]


def linear_of_own_rows(
    x: Array, weight: Array, bias: Array, out: Array, squares: Array, rank: int, *, dtype: str
) -> tuple[Array, F32]:
    """The product is added to out in f32."""
    ranks, piece, _ = x.shape
    before = np.concatenate([out[r, r * piece : (r + 1) * piece] for r in range(ranks)])
    total = f32(before) + f32(bias) + product(x.reshape(ranks * piece, -1), weight, dtype)
    return (
        float64.own_piece(rounded(total, dtype), out[rank], rank, ranks),
        f32(float64.parts_of_squares(total, squares.shape[1])),
    )


def all_gather_matmul(x: Array, weight: Array, rank: int, *, dtype: str) -> Array:
    return np.stack([matmul(rows, weight[rank], dtype=dtype) for rows in x])
