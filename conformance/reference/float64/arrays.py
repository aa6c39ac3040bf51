"""What the references in float64 compute with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..widened import widened

Array = NDArray[Any]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


def f64(x: Array) -> F64:
    return widened(np.asarray(x), np.float64)


IN_CACHE = 1 << 16  # elements


def in_parts(function: Callable[[Array], Array], x: Array) -> Array:
    """Applies an elementwise function to x in parts that fit the processor's cache."""
    flat = x.reshape(-1)
    out = np.empty(flat.shape, function(flat[:0]).dtype)
    for start in range(0, x.size, IN_CACHE):
        out[start : start + IN_CACHE] = function(flat[start : start + IN_CACHE])
    return out.reshape(x.shape)
