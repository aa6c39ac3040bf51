"""The parts of decoding are attention, and an append leaves all else alone."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.reference import float64


@pytest.mark.parametrize("spans", [1, 2, 3])
def test_decode_attention_and_its_merge_are_attention(rng: np.random.Generator, spans: int) -> None:
    q, k, v = (rng.standard_normal((2, 3, 4)) for _ in range(3))  # (B, H, D)
    cache = rng.standard_normal((2, 300, 3, 4))
    positions, partial = np.array([2, 299], np.int32), np.zeros((2, 3, spans, 4))
    cache[0, 2:] = np.nan  # what lies past the position is not read
    keys, values, sums, stats = float64.decode_attention(q, k, v, positions, cache, -cache, partial, 0.5)
    assert np.array_equal(keys[0, 2], k[0])
    assert np.isnan(keys[0, 3:]).all()
    out = float64.merge_attention(sums, stats)
    for b, stop in enumerate(positions + 1):
        wanted = float64.attention(q[b : b + 1, None], keys[b : b + 1, :stop], values[b : b + 1, :stop], 0.5)
        assert np.allclose(out[b], wanted[0, 0])
    assert (stats[0, :, 1:, 0] == float64.LEAST).all()
    assert (sums[0, :, 1:] == 0).all()
    *caches, at_once = float64.decode_attention_unsplit(q, k, v, positions, cache, -cache, 0.5)
    assert np.array_equal(caches, [keys, values], equal_nan=True)
    assert np.allclose(at_once, out)


def test_the_spans_of_a_cache() -> None:
    assert float64.spans(300, 3, last=299) == [(0, 128), (128, 256), (256, 300)]
    assert float64.spans(300, 2, last=130) == [(0, 131)]
    assert float64.spans(300, 2, last=256) == [(0, 256), (256, 257)]
    assert float64.spans(300, 1, last=299) == [(0, 300)]


def test_kv_append_leaves_its_arguments_and_the_rest_alone(rng: np.random.Generator) -> None:
    new, cache = rng.standard_normal((2, 2, 1, 3)), rng.standard_normal((2, 6, 1, 3))
    before = cache.copy()
    keys, values = float64.kv_append(new, -new, np.array([0, 4]), cache, cache)
    assert np.array_equal(cache, before)
    assert np.array_equal(keys[0, :2], new[0])
    assert np.array_equal(values[1, 4:], -new[1])
    assert np.array_equal(keys[0, 2:], before[0, 2:])
    assert np.array_equal(keys[1, :4], before[1, :4])
