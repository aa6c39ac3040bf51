"""Attention in float64 against its formula."""

from __future__ import annotations

import math

import numpy as np

from conformance.reference import float64


def test_attention_is_causal_softmax_of_scaled_products(rng: np.random.Generator) -> None:
    q, k, v = rng.standard_normal((1, 2, 1, 3)), rng.standard_normal((1, 4, 1, 3)), rng.standard_normal((1, 4, 1, 3))
    out = float64.attention(q, k, v, 0.7)
    for t in range(2):
        seen = range(4 - 2 + t + 1)
        weights = [math.exp(0.7 * sum(q[0, t, 0] * k[0, s, 0])) for s in seen]
        wanted = sum(w * v[0, s, 0] for w, s in zip(weights, seen, strict=True)) / sum(weights)
        assert np.allclose(out[0, t, 0], wanted, rtol=1e-12)
