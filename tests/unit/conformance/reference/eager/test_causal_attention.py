"""Scores are added up in the order of a kernel's."""

from __future__ import annotations

import numpy as np

from conformance.reference import eager


def test_scores_of_few_queries_are_added_up_in_order(rng: np.random.Generator) -> None:
    """One rounding for each number of a head, whichever code numpy has for the size."""
    q, k = (30 * rng.standard_normal((rows, 64)).astype(np.float32) for rows in (3, 5))
    wanted = np.zeros((3, 5), np.float32)
    for t, s in np.ndindex(3, 5):
        for d in range(64):
            wanted[t, s] = np.float32(float(wanted[t, s]) + float(q[t, d]) * float(k[s, d]))
    assert np.array_equal(eager.scores_in_order(q, k, "f32"), wanted)


def test_few_rows_of_scores_are_added_up_in_order(rng: np.random.Generator) -> None:
    q, k = rng.standard_normal((3, 33)).astype(np.float32), rng.standard_normal((5, 33)).astype(np.float32)
    for t, s in np.ndindex(3, 5):
        total = np.float32(0)
        for d in range(33):
            total = np.float32(float(total) + float(q[t, d]) * float(k[s, d]))
        assert eager.scores_in_order(q, k, "f32")[t, s] == total
