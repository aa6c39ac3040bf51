"""What several GPUs launch together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .arrays import F64, Array, f64
from .causal_attention import attention
from .rms_products import parts_of_squares, rms_linear, rms_linear_gelu
from .rows import residual_layernorm, rmsnorm
from .tokens import next_token


def all_reduce(parts: Array, rank: int) -> F64:
    """What each rank gets. Of all collectives here the results alone are computed, without flags and state."""
    del rank
    return f64(parts).sum(axis=0)  # (N,)


def all_reduce_two_shot(parts: Array, rank: int) -> F64:
    return all_reduce(parts, rank)


def all_reduce_layernorm(
    parts: Array, bias: Array, norm_weight: Array, norm_bias: Array, x: Array, rank: int, eps: float
) -> tuple[F64, F64]:
    del rank
    return residual_layernorm(parts, bias, norm_weight, norm_bias, x, eps)


def all_reduce_rmsnorm(parts: Array, norm_weight: Array, x: Array, rank: int, eps: float) -> tuple[F64, F64]:
    del rank
    total = f64(x) + f64(parts).sum(axis=0)
    return total, rmsnorm(total, norm_weight, eps)


def all_gather(parts: Array, rank: int) -> F64:
    del rank
    return f64(parts)  # (R, N)


def reduce_scatter(parts: Array, rank: int) -> F64:
    return f64(parts)[:, rank].sum(axis=0)  # (N,)


def broadcast(parts: Array, rank: int, root: int) -> F64:
    del rank
    return f64(parts)[root]


def next_token_of_ranks(
    values: Array, indices: Array, positions: Array, rank: int, width: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The token of each row (M,) over all ranks, and the positions counted up."""
    del rank
    whole = indices + width * np.arange(len(indices))[:, None, None]  # (R, M, Z)
    rows = [np.concatenate(list(each), axis=1) for each in (values, whole)]  # (M, R Z)
    return next_token(rows[0], rows[1], positions)


def matmul_reduce_scatter(x: Array, weight: Array, rank: int) -> F64:
    """x (ranks, R, M, K) and weight (ranks, K, N): those of each rank."""
    return (f64(x[:, rank]) @ f64(weight)).sum(axis=0)  # (M, N)


def linear_to_ranks(
    x: Array, weight: Array, bias: Array, out: Array, squares: Array, rank: int
) -> tuple[F64, F64]:  # fmt: skip
    """x (ranks, M, K) and weight (ranks, K, N): those of each rank. out (R, M, N): before, of which each rank adds to
    its own piece of the rows; the others stay as they are."""
    pieces = [rows[s * len(rows) // len(out) : (s + 1) * len(rows) // len(out)] for s, rows in enumerate(out)]
    total = f64(np.concatenate(pieces)) + f64(bias) + (f64(x) @ f64(weight)).sum(axis=0)
    return own_piece(total, out[rank], rank, len(out)), parts_of_squares(total, squares.shape[1])


def own_piece(total: Array, before: Array, rank: int, ranks: int) -> Array:
    """The rows of one of the pieces are new, all others as before."""
    piece = np.arange(len(total)) * ranks // len(total)
    return np.where((piece == rank)[:, None], total, before.astype(total.dtype))


def rms_linear_of_ranks(
    x: Array, squares: Array, weight: Array, bias: Array, eps: float, rank: int, sends: int
) -> F64:  # fmt: skip
    """x (R, M, K) and squares (R, Z, M) in each rank's memory; weight (ranks, K, N) and bias (ranks, N) of each. All
    have the same x, so that it is no matter if they send it."""
    del sends
    return rms_linear(x[rank], squares[rank], weight[rank], bias[rank], eps)


def rms_linear_gelu_of_ranks(
    x: Array, squares: Array, weight: Array, bias: Array, eps: float, rank: int, sends: int
) -> F64:  # fmt: skip
    del sends
    return rms_linear_gelu(x[rank], squares[rank], weight[rank], bias[rank], eps)


def attention_to_ranks(q: Array, k: Array, v: Array, scale: float, rank: int, out: Array) -> F64:
    """q, k and v (ranks, B, T, H, D): those of each rank, whose heads come one rank's behind the other's."""
    heads = np.concatenate([attention(*each, scale) for each in zip(q, k, v, strict=True)], axis=2)
    return heads.reshape(out.shape)[rank]  # (Q, C)


def linear_of_own_rows(
    x: Array, weight: Array, bias: Array, out: Array, squares: Array, rank: int
) -> tuple[F64, F64]:  # fmt: skip
    """x (R, Q, K): of each rank the rows of its piece. out as of linear_to_ranks."""
    ranks, piece, _ = x.shape
    before = np.concatenate([out[r, r * piece : (r + 1) * piece] for r in range(ranks)])
    total = f64(before) + f64(bias) + f64(x).reshape(ranks * piece, -1) @ f64(weight)
    return own_piece(total, out[rank], rank, ranks), parts_of_squares(total, squares.shape[1])


def all_gather_matmul(x: Array, weight: Array, rank: int) -> F64:
    """x (ranks, M, K) and weight (ranks, K, N): those of each rank."""
    return f64(x) @ f64(weight[rank])  # (R, M, N)
