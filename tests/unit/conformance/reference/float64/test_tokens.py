"""Of equal values the first is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.reference import float64


def test_the_likeliest_token(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 5000))
    x[0, [7, 4999]] = 9  # of equals the first
    x[1, 4100] = 9
    values, indices = float64.argmax_parts(x, np.empty((3, 3)))
    tokens, positions = float64.next_token(values, indices, np.array([0, 5, 6], np.int32))
    assert tokens.tolist() == x.argmax(axis=1).tolist()
    assert tokens[:2].tolist() == [7, 4100]
    assert positions.tolist() == [1, 6, 7]
    tokens, _ = float64.next_token(values[:, ::-1], indices[:, ::-1], positions)
    assert tokens.tolist() == x.argmax(axis=1).tolist()  # whatever part comes first
    with pytest.raises(ValueError, match="3 parts, not 2"):
        float64.argmax_parts(x, np.empty((3, 2)))
