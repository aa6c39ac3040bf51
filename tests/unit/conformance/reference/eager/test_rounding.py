"""Rounding is to nearest, ties to even, as numpy's."""

from __future__ import annotations

import numpy as np

from conformance.reference import eager


def test_tf32_keeps_ten_bits_and_rounds_ties_to_even() -> None:
    ulp = 2.0**-10
    x = np.array([1 + ulp / 2, 1 + 3 * ulp / 2, 1 + ulp / 2 + 2**-20, -1 - 3 * ulp / 2, 3e38, 0, np.inf], np.float32)
    wanted = [1, 1 + 2 * ulp, 1 + ulp, -1 - 2 * ulp]
    assert eager.tf32(x)[:4].tolist() == wanted
    assert eager.tf32(x)[5:].tolist() == [0, np.inf]
    assert np.isnan(eager.tf32(np.array([np.nan], np.float32))).all()


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
