"""Ops on rows against their formulas, number by number."""

from __future__ import annotations

import math

import numpy as np

from conformance.reference import float64


def test_small_ops_against_scalars(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 7))
    assert np.allclose(
        float64.gelu(x),
        [[v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) for v in row] for row in x],
    )
    assert np.allclose(float64.softmax(x), [[math.exp(v) / sum(map(math.exp, row)) for v in row] for row in x])
    mean, variance = x.mean(1), x.var(1)
    wanted = [(x[i] - mean[i]) / math.sqrt(variance[i] + 0.1) * 2 + 3 for i in range(3)]
    assert np.allclose(float64.layernorm(x, np.full(7, 2), np.full(7, 3), 0.1), wanted)
