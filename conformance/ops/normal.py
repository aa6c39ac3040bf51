"""Random numbers for large arrays. Drawn one by one they would take longer than most references."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PERIOD = 1_000_003  # a prime number: no two rows of an array are alike, and none of another tile


def normal(rng: np.random.Generator, shape: Sequence[int], dtype: type[np.floating[Any]] = np.float64) -> NDArray[Any]:
    """Normal values, f64 or f32. More than PERIOD of them are the first ones again."""
    count = math.prod(shape)
    if count <= PERIOD:
        return rng.standard_normal(tuple(shape), dtype)
    return np.resize(rng.standard_normal(PERIOD, dtype), tuple(shape))


def normal_of(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The same of any dtype: what is repeated is converted once."""
    count = math.prod(shape)
    return np.resize(normal(rng, (min(count, PERIOD),)).astype(dtype), tuple(shape))
