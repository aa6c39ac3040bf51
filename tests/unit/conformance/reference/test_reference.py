"""The references of an op: its family, and what both do alike."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from conformance import cases
from conformance.cases import Case
from conformance.reference import eager, float64
from conformance.reference.float64 import arrays
from toolchain.contract.op import ops


def test_an_ops_references_and_its_cases_are_in_modules_of_one_name() -> None:
    families = {
        (case.op, name)
        for name, module in vars(cases).items()
        if isinstance(module, ModuleType)
        for value in vars(module).values()
        if isinstance(value, tuple)
        for case in value
        if isinstance(case, Case)
    }
    assert len(families) == len(ops())
    for reference in (float64, eager):
        modules = {(op, getattr(reference, op).__module__.rpartition(".")[2]) for op in ops() if not ops()[op].whole}
        assert modules == {(op, family) for op, family in families if not ops()[op].whole}


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


def test_gelu_in_parts_is_that_of_the_whole(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    x = rng.standard_normal((7, 11))[:, :9]  # not contiguous
    whole = float64.gelu(x), eager.gelu(x, dtype="bf16")
    assert whole[1].dtype == eager.rounded(x, "bf16").dtype
    monkeypatch.setattr(arrays, "IN_CACHE", 10)
    assert np.array_equal(float64.gelu(x), whole[0])
    assert np.array_equal(eager.gelu(x, dtype="bf16"), whole[1])
