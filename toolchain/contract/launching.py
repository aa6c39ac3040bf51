"""What any launch takes, on a GPU or on the CPU: grids, and numbers that fit their parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import LaunchError

MAX_GRID = (2**31 - 1, 65535, 65535)  # blocks in x, y and z on every GPU
BITS: Mapping[str, int] = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
FLOATS: Mapping[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64), "f32": np.dtype(np.float32), "tf32": np.dtype(np.float32),
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2), "f8E8M0FNU": np.dtype(ml_dtypes.float8_e8m0fnu),
}  # fmt: skip
# The element types of arrays, by their names in Tile IR, as numpy holds them.
DTYPES: Mapping[str, np.dtype[Any]] = {
    **FLOATS, "i1": np.dtype(np.bool_), "i8": np.dtype(np.int8), "i16": np.dtype(np.int16), "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}  # fmt: skip


def check_grid(symbol: str, grid: tuple[int, int, int]) -> None:
    """Raises LaunchError for a grid that CUDA cannot launch."""
    for axis, size, limit in zip("xyz", grid, MAX_GRID, strict=True):
        if not 0 < size <= limit:
            raise LaunchError(f"{symbol}: its grid is {grid}; CUDA takes 1 to {limit} blocks in {axis}")


def number(dtype: str, value: Any, what: str) -> int | float:
    """A Python number for a parameter of a dtype, as Tile IR spells it; a float is not yet rounded to it. Raises
    LaunchError for what is no number, and for one outside of the dtype."""
    if dtype in FLOATS:
        return _float(dtype, value, what)
    if not isinstance(value, bool | int | np.integer | np.bool_):
        raise LaunchError(f"{what} is {value!r}; the kernel takes an integer, {dtype}")
    bits, whole = BITS[dtype], int(value)
    if not (0 <= whole <= 1 if bits == 1 else -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1)):
        raise LaunchError(f"{what} is {value}, outside of {dtype}")
    return whole


def _float(dtype: str, value: Any, what: str) -> float:
    try:
        exact = float(value)
        with np.errstate(over="ignore"):
            stored = float(np.array(exact).astype(FLOATS[dtype]))
    except TypeError as error:
        raise LaunchError(f"{what} is {value!r}; the kernel takes a number, {dtype}") from error
    except OverflowError:  # of an int beyond f64
        exact, stored = math.inf, math.nan
    if (math.isfinite(exact) and not math.isfinite(stored)) or math.isnan(stored) > math.isnan(exact):
        raise LaunchError(f"{what} is {value}, outside of {dtype}")
    return exact
