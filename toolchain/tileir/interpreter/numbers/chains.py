"""Products of matrices, with their sums added up in several chains, as on a GPU: the error of a chain grows with its
length."""

from __future__ import annotations

import numpy as np

from .elements import Array

LONG, CHAIN = 64, 32  # with a longer K there are chains of so many


def product(a: Array, b: Array) -> Array:
    """The product (..., M, N) of (..., M, K) and (..., K, N)."""
    depth = a.shape[-1]
    length = _length(depth, a)
    if a.ndim == b.ndim == 2 and depth % length == 0:
        return products(a, b, depth)[0]
    return _added(a, b, length)


def products(a: Array, b: Array, depth: int) -> Array:
    """The products (Z, M, N) of each `depth` columns of (M, K) with as many rows of (K, N), and of those that are left.
    `depth` is a power of two."""
    (m, k), n, length = a.shape, b.shape[1], _length(depth, a)
    whole = k - k % depth
    left, right = a[:, :whole].reshape(m, whole // length, length), b[:whole].reshape(whole // length, length, n)
    made = np.matmul(left.swapaxes(0, 1), right)
    if length < depth:
        made = np.add.reduce(made.reshape(whole // depth, depth // length, m, n), axis=1)
    return np.concatenate([made, _added(a[:, whole:], b[whole:], length)[None]]) if whole < k else made


def _added(a: Array, b: Array, length: int) -> Array:
    """A product, chain by chain."""
    made = np.matmul(a[..., :length], b[..., :length, :])
    for start in range(length, a.shape[-1], length):
        made += np.matmul(a[..., start : start + length], b[..., start : start + length, :])
    return made


def _length(depth: int, a: Array) -> int:
    """Of the chains of a product with so many steps along K."""
    return CHAIN if depth > LONG and a.dtype != np.float64 else depth
