"""Attention over whole prompts, in blocks of queries."""

from __future__ import annotations

import itertools

import numpy as np

from .arrays import F64, Array, f64


def attention(q: Array, k: Array, v: Array, scale: float) -> F64:
    """Causal attention. The T queries are the last T of the S positions."""
    (batch, t, heads, _), s = q.shape, k.shape[1]
    out = np.empty(q.shape)
    for b, h in np.ndindex(batch, heads):
        keys, values = f64(k[b, :, h]), f64(v[b, :, h])
        for rows, stop in blocks(t, s):
            scores = f64(q[b, rows, h]) @ keys[:stop].T
            scores *= scale
            hide(scores)
            scores -= scores.max(axis=-1, keepdims=True)  # softmax, without memory for each of its steps
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            out[b, rows, h] = scores @ values[:stop]
    return out


def attention_to_f8(q: Array, k: Array, v: Array, scale: float) -> F64:
    """Without the rounding of its last step."""
    return attention(q, k, v, scale)


BLOCK = 128  # queries: the scores of so many stay in the cache


def blocks(t: int, s: int) -> list[tuple[slice, int]]:
    """The queries of causal attention in blocks of at most BLOCK, each with how many of the S keys it sees. Of several
    blocks none has fewer than BLOCK / 2."""
    count = max(1, -(-t // BLOCK))
    bounds = [t * block // count for block in range(count + 1)]
    return [(slice(start, stop), s - t + stop) for start, stop in itertools.pairwise(bounds)]


def hide(scores: Array) -> Array:
    """The scores (T, S) of a block's queries and the keys it sees; -inf, in place, where a key comes after a query."""
    t, s = scores.shape
    scores[:, s - t :][np.triu(np.ones((t, t), bool), 1)] = -np.inf
    return scores
