"""Tokens: their embeddings, and the choice of the next one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import float64
from .rounding import F32, Array, f32, rounded


def embedding(tokens: Array, positions: Array, wte: Array, wpe: Array, *, dtype: str) -> Array:
    return rounded(f32(wte[tokens]) + f32(wpe[positions]), dtype)


def embedding_centred(
    tokens: Array, positions: Array, wte: Array, wpe: Array, squares: Array, *, dtype: str
) -> tuple[Array, F32]:
    whole = f32(wte[tokens]) + f32(wpe[positions])
    centred = whole - whole.mean(axis=-1, keepdims=True)
    sums = np.zeros(squares.shape, np.float32)
    sums[0, : len(whole)] = (centred * centred).sum(axis=-1)
    return rounded(centred, dtype), sums


def argmax_parts(x: Array, values: Array, *, dtype: str) -> tuple[F32, NDArray[np.int32]]:
    largest, indices = float64.argmax_parts(rounded(x, dtype), values)
    return f32(largest), indices


def next_token(
    values: Array, indices: Array, positions: Array, *, dtype: str
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    del dtype
    return float64.next_token(values, indices, positions)


def token_embedding(tokens: Array, wte: Array, *, dtype: str) -> Array:
    return rounded(wte[tokens], dtype)
