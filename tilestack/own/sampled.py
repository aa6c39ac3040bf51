"""Compares an output with a recording: all elements must be finite, and those that were kept within the bound."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from conformance.ops.compare import Verdict
from toolchain.errors import ConformanceError

from .problem import Array
from .recording import Expected, Recording

MOST = 1 << 18  # elements of an output that a recording keeps: 2 MiB
_STEP = 2654435761  # a prime: its multiples spread evenly over any size


def sample(size: int) -> NDArray[np.int64]:
    """The places of the elements that are kept: all of a small output, else MOST of them."""
    if size <= MOST:
        return np.arange(size)
    return np.unique(np.arange(MOST, dtype=np.uint64) * np.uint64(_STEP) % np.uint64(size)).astype(np.int64)


def judge(what: str, result: Array, expected: Expected, recording: Recording) -> Verdict:
    """The verdict on an output. Raises ConformanceError."""
    integers = np.issubdtype(result.dtype, np.integer)
    right = np.frombuffer(recording.read(expected.exact), np.int64 if integers else np.float64)
    places = sample(result.size)
    kept = result.reshape(-1)[places]
    if not integers and (lost := result.size - int(np.count_nonzero(np.isfinite(result.astype(np.float32))))):
        raise ConformanceError(f"{what}: {lost} of {result.size} elements are not finite or not written")
    if not result.size:
        return Verdict(0.0, expected.bound)
    off = np.abs(kept.astype(np.float64) - right)
    at = int(np.argmax(off))
    worst = str(tuple(int(i) for i in np.unravel_index(int(places[at]), result.shape)))
    if not off[at] <= expected.bound:
        raise ConformanceError(f"{what}: off by {off[at]:.3g} at {worst}, allowed {expected.bound:.3g}")
    if expected.digest and hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest() != expected.digest:
        raise ConformanceError(f"{what}: its integers are not those of the reference")
    return Verdict(float(off[at]), expected.bound, worst)
