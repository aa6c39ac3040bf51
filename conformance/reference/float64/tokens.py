"""Tokens: their embeddings, and the choice of the next one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .arrays import F64, Array, f64


def embedding(tokens: Array, positions: Array, wte: Array, wpe: Array) -> F64:
    return f64(wte[tokens]) + f64(wpe[positions])  # (N, C)


def embedding_centred(tokens: Array, positions: Array, wte: Array, wpe: Array, squares: Array) -> tuple[F64, F64]:
    """The embedding minus its row mean, and its row sums of squares. A row's whole sum is in part 0 of `squares`, the
    other parts are 0."""
    whole = embedding(tokens, positions, wte, wpe)
    centred = whole - whole.mean(axis=-1, keepdims=True)
    sums = np.zeros(squares.shape)
    sums[0, : len(whole)] = (centred**2).sum(axis=-1)
    return centred, sums


def argmax_parts(x: Array, values: Array) -> tuple[F64, NDArray[np.int32]]:
    """The largest value and its index in each part of a row, PART columns a part. `values` must have room for all."""
    x = f64(x)
    parts = [x[:, start : start + PART] for start in range(0, x.shape[1], PART)]
    if len(parts) != values.shape[1]:
        raise ValueError(f"{x.shape[1]} columns are {len(parts)} parts, not {values.shape[1]}")
    largest = np.stack([part.max(axis=1) for part in parts], axis=1)  # (M, Z)
    indices = np.stack([part.argmax(axis=1) + PART * z for z, part in enumerate(parts)], axis=1)
    return largest, indices.astype(np.int32)


PART = 2048


def next_token(values: Array, indices: Array, positions: Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The token of each row, the least index of the largest value, and the positions counted up."""
    largest = f64(values).max(axis=1, keepdims=True)
    first = np.where(values == largest, indices, np.iinfo(np.int32).max).min(axis=1)
    return first.astype(np.int32), (positions + 1).astype(np.int32)


def token_embedding(tokens: Array, wte: Array) -> F64:
    return f64(wte[tokens])  # (N, C)
