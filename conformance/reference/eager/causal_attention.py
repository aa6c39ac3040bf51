"""Attention over whole prompts, in blocks of queries."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .. import float64
from .rounding import F32, STORAGE, Array, f32, nearest, product, rounded

FEW_ROWS = 64  # with so many, BLAS keeps one sum for each element of a product, as a kernel does


def scores_in_order(q: Array, k: Array, dtype: str) -> F32:
    """q (T, D) @ k (S, D).T in f32, added up in order with one rounding each, as a kernel in f32 does.

    For few rows numpy takes other code, which adds up several lanes beside one another: that is more accurate than a
    kernel with one sum, and depends on the machine. The softmax makes an error of a score a relative error of a weight,
    so the bound of attention follows from the order."""
    if dtype == "tf32" or len(q) >= FEW_ROWS:
        return product(q, k.T, dtype)
    return _in_order(q[None], k[None])[0]


def _in_order(q: Array, k: Array) -> F32:
    """The scores (G, T, S) of q (G, T, D) and k (G, S, D), for a part of the keys after the other."""
    queries = np.ascontiguousarray(np.moveaxis(q, -1, 0), np.float64)  # (D, G, T)
    scores, size = np.empty((*q.shape[:2], k.shape[1]), np.float32), max(1, float64.IN_CACHE // q[..., 0].size)
    for start in range(0, k.shape[1], size):
        keys = np.asarray(np.moveaxis(k[:, start : start + size], -1, 0), np.float64, order="C")  # (D, G, S)
        products = np.empty((*q.shape[:2], keys.shape[-1]))
        total = np.zeros(products.shape, np.float32)
        for query, key in zip(queries, keys, strict=True):
            np.multiply(query[:, :, None], key[:, None], out=products)  # exact in f64
            np.add(total, products, out=products)
            total[...] = products
        scores[..., start : start + size] = total
    return scores


def scores_of_heads(q: Array, k: Array, dtype: str) -> F32:
    """The scores (G, Q, S) of q (G, Q, D) and k (S, G, D)."""
    if dtype == "tf32" or q.shape[1] >= FEW_ROWS:
        return np.stack([scores_in_order(q[g], k[:, g], dtype) for g in range(len(q))])
    return _in_order(q, np.moveaxis(k, 0, 1))


def attention(q: Array, k: Array, v: Array, scale: float, *, dtype: str) -> Array:
    """Sums run over all S keys, also where a block of queries sees fewer: their order is that of whole matrices."""
    (batch, t, heads, _), s = q.shape, k.shape[1]
    out = np.empty(q.shape, STORAGE[dtype])
    for b, h in np.ndindex(batch, heads):
        whole = np.zeros((min(t, float64.BLOCK), s), np.float32)  # behind what was seen so far it stays 0
        for rows, stop in float64.blocks(t, s):
            weights = whole[: rows.stop - rows.start]
            scores = nearest(scores_in_order(q[b, rows, h], k[b, :stop, h], dtype), dtype)
            scores *= np.float32(scale)
            scores = float64.hide(nearest(scores, dtype))
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=weights[:, :stop])
            np.divide(weights[:, :stop], weights.sum(axis=-1, keepdims=True), out=scores)
            weights[:, :stop] = nearest(scores, dtype)
            out[b, rows, h] = rounded(product(weights, v[b, :, h], dtype), dtype)
    return out


def attention_to_f8(q: Array, k: Array, v: Array, scale: float, *, dtype: str) -> Array:
    made = f32(attention(q, k, v, scale, dtype=dtype))
    return np.clip(made, -float64.LARGEST, float64.LARGEST).astype(ml_dtypes.float8_e4m3fn)
