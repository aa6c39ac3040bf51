from __future__ import annotations

import numpy as np
import pytest

from conformance.reference import eager, float64
from conformance.reference.float64 import arrays


def test_tf32_keeps_ten_bits_and_rounds_ties_to_even() -> None:
    ulp = 2.0**-10
    x = np.array([1 + ulp / 2, 1 + 3 * ulp / 2, 1 + ulp / 2 + 2**-20, -1 - 3 * ulp / 2, 3e38, 0, np.inf], np.float32)
    wanted = [1, 1 + 2 * ulp, 1 + ulp, -1 - 2 * ulp]
    assert eager.tf32(x)[:4].tolist() == wanted
    assert eager.tf32(x)[5:].tolist() == [0, np.inf]
    assert np.isnan(eager.tf32(np.array([np.nan], np.float32))).all()


def test_scores_of_few_queries_are_added_up_in_order(rng: np.random.Generator) -> None:
    """One rounding for each number of a head, whichever code numpy has for the size."""
    q, k = (30 * rng.standard_normal((rows, 64)).astype(np.float32) for rows in (3, 5))
    wanted = np.zeros((3, 5), np.float32)
    for t, s in np.ndindex(3, 5):
        for d in range(64):
            wanted[t, s] = np.float32(float(wanted[t, s]) + float(q[t, d]) * float(k[s, d]))
    assert np.array_equal(eager.scores_in_order(q, k, "f32"), wanted)


def whole_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, dtype: str = "") -> np.ndarray:
    """Causal attention with whole matrices of scores (T, S): in float64, or as an eager framework in a dtype."""
    (batch, t, heads, _), s = q.shape, k.shape[1]
    out = np.empty(q.shape)
    for b, h in np.ndindex(batch, heads):
        if dtype:
            scores = eager.rounded(eager.scores_in_order(q[b, :, h], k[b, :, h], dtype), dtype)
            scores = eager.rounded(np.float32(scale) * eager.f32(scores), dtype).astype(np.float32)
        else:
            scores = scale * (q[b, :, h] @ k[b, :, h].T)
        scores = np.where(np.arange(s) <= np.arange(t)[:, None] + (s - t), scores, -np.inf)
        if dtype:
            weights = eager.softmax(scores.astype(np.float32), dtype=dtype)
            products = [eager.tf32(x) if dtype == "tf32" else eager.f32(x) for x in (weights, v[b, :, h])]
            out[b, :, h] = eager.rounded(products[0] @ products[1], dtype)
        else:
            out[b, :, h] = float64.softmax(scores) @ v[b, :, h]
    return out


@pytest.mark.parametrize(("t", "s"), [(1, 1), (5, 40), (128, 128), (129, 129), (300, 300), (260, 323)])
def test_attention_by_blocks_is_that_of_whole_matrices(rng: np.random.Generator, t: int, s: int) -> None:
    q, k, v = (rng.standard_normal((2, n, 2, 32)).astype(np.float16) for n in (t, s, s))
    q *= 3
    whole = whole_attention(float64.f64(q), float64.f64(k), float64.f64(v), 0.25)
    assert np.allclose(float64.attention(q, k, v, 0.25), whole, rtol=0, atol=1e-13 * np.abs(whole).max())
    # Row sums have other lengths, so numpy and BLAS add in other orders, which differ by processor: up to 8 units of
    # f32, and a weight that this rounds the other way is off by a step of tf32.
    for dtype, ulp in (("f32", 2**-20), ("tf32", 2**-13), ("f16", 2**-10), ("bf16", 2**-7)):
        x, y, z = (eager.rounded(of, dtype) for of in (q, k, v))
        found, wanted = eager.attention(x, y, z, 0.25, dtype=dtype), whole_attention(x, y, z, 0.25, dtype)
        assert np.allclose(eager.f32(found), wanted, rtol=0, atol=4 * ulp * np.abs(wanted).max()), dtype


@pytest.mark.parametrize(("t", "s"), [(1, 7), (128, 128), (129, 129), (300, 300), (1024, 8192)])
def test_the_blocks_of_attention(t: int, s: int) -> None:
    found = float64.blocks(t, s)
    assert [i for rows, _ in found for i in range(rows.start, rows.stop)] == list(range(t))
    assert all(stop == rows.stop + s - t for rows, stop in found)
    sizes = [rows.stop - rows.start for rows, _ in found]
    assert max(sizes) <= float64.BLOCK
    assert len(sizes) == 1 or min(sizes) >= eager.FEW_ROWS  # with fewer the scores would be added up in another way


def test_rounding_to_f16_is_numpys(rng: np.random.Generator) -> None:
    x = (rng.standard_normal(5000) * np.exp2(rng.uniform(-40, 18, 5000))).astype(np.float32)
    halves = np.arange(-4097, 4098) * np.float32(2.0**-26)  # ties among the subnormal numbers
    edges = [0.0, -0.0, -(2.0**-30), 65519.0, 65520.0, -1e38, np.inf, -np.inf, np.nan]
    x = np.concatenate([x, halves, np.array(edges)]).astype(np.float32)
    with np.errstate(over="ignore"):
        wanted = x.astype(np.float16)
    assert np.array_equal(eager.rounded(x, "f16").view(np.uint16), wanted.view(np.uint16))
    for some in (x, x[np.abs(x) < 65000]):
        found = eager.nearest(some, "f16").astype(np.float16)
        assert np.array_equal(found, some.astype(np.float16) if len(some) < len(x) else wanted, equal_nan=True)


def test_rounding_to_tf32_leaves_what_is_not_finite() -> None:
    odd = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, np.inf, -np.inf, np.nan], np.float32)
    wanted = np.array([1, 1 + 2.0**-9, np.inf, -np.inf, np.nan], np.float32)
    assert np.array_equal(eager.tf32(odd), wanted, equal_nan=True)
    assert np.array_equal(eager.tf32(odd[:2]), wanted[:2])


def test_gelu_in_parts_is_that_of_the_whole(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    x = rng.standard_normal((7, 11))[:, :9]  # not contiguous
    whole = float64.gelu(x), eager.gelu(x, dtype="bf16")
    assert whole[1].dtype == eager.rounded(x, "bf16").dtype
    monkeypatch.setattr(arrays, "IN_CACHE", 10)
    assert np.array_equal(float64.gelu(x), whole[0])
    assert np.array_equal(eager.gelu(x, dtype="bf16"), whole[1])


def test_few_rows_of_scores_are_added_up_in_order(rng: np.random.Generator) -> None:
    q, k = rng.standard_normal((3, 33)).astype(np.float32), rng.standard_normal((5, 33)).astype(np.float32)
    for t, s in np.ndindex(3, 5):
        total = np.float32(0)
        for d in range(33):
            total = np.float32(float(total) + float(q[t, d]) * float(k[s, d]))
        assert eager.scores_in_order(q, k, "f32")[t, s] == total
