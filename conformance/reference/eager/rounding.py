"""Numbers rounded to a dtype, and products of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..float64 import in_parts

Array = NDArray[Any]
F32 = NDArray[np.float32]

STORAGE: Mapping[str, Any] = {
    "f32": np.float32, "tf32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
}  # fmt: skip


def f32(x: Array) -> F32:
    return np.asarray(x, np.float32)


def rounded(x: Array, dtype: str) -> Array:
    """`x` rounded to the type that stores the dtype."""
    with np.errstate(over="ignore"):
        if dtype == "f16" and x.dtype == np.float32:
            return in_parts(lambda part: _nearest_f16(part).astype(np.float16), x)
        return np.asarray(x, STORAGE[dtype])


def _nearest_f16(x: F32) -> F32:
    """`x` rounded to f16, but in f32 and without its largest number. numpy takes 40 times as long for a number that
    becomes a subnormal one of f16 and has to be rounded, such as most weights of a long softmax."""
    power = (x.view(np.uint32) & np.uint32(0x7F800000)).view(np.float32)  # of two, at most |x|
    shift = np.clip(power, np.float32(2**-14), np.float32(2**16), out=power)
    shift *= np.float32(1.5 * 2**13)  # between f32's numbers of this size is as much as between f16's of that of x
    near = x + shift
    near -= shift
    return np.copysign(near, x, out=near)


def nearest(x: F32, dtype: str) -> F32:
    """`x` rounded to the dtype, in f32."""
    if dtype == "f16":
        near = _nearest_f16(x)
        return near if np.abs(near).max(initial=0) <= np.finfo(np.float16).max else f32(rounded(x, dtype))
    return f32(rounded(x, dtype))


def tf32(x: Array) -> F32:
    """`x` rounded to 10 bits of mantissa, to nearest, ties to even."""
    bits = f32(x).view(np.uint32)
    odd = (bits >> np.uint32(13)) & np.uint32(1)
    near = (bits + np.uint32(0xFFF) + odd) & np.uint32(0xFFFFE000)
    finite = np.isfinite(x)
    return (near if finite.all() else np.where(finite, near, bits)).view(np.float32)


def product(a: Array, b: Array, dtype: str) -> F32:
    """a @ b in f32."""
    return tf32(a) @ tf32(b) if dtype == "tf32" else f32(a) @ f32(b)
