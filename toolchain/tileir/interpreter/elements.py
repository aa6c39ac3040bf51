"""Element types: how a tile's elements are stored in memory, and how they are computed with.

A tile is a numpy array in the element's `compute` dtype. Floats narrower than f32 (f16, bf16, tf32, f8) are computed
in f32 and rounded back after every operation. Their tiles are f32 arrays that hold only representable values, so a
widening cast costs nothing and a matrix product goes straight to BLAS. The 24 bits of f32 are at least twice the bits
of a narrow type plus two; therefore rounding twice (to f32, then to the type) equals rounding once for + - * / and the
square root.

An array may have extent 1 where its tile has more: all elements along that dimension are equal. A rank-0 integer is a
Python int (a bool for i1) in the signed range of its type; a rank-0 float is a numpy scalar.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Element:
    """One element type. `decode` reads memory into a new array in `compute`, `encode` writes it back. `round` rounds
    values in `compute` to the nearest representable ones, ties to even; it is None if all values are representable."""

    name: str
    bits: int
    kind: Literal["integer", "float", "pointer"]
    storage: np.dtype[Any]
    compute: np.dtype[Any]
    decode: Callable[[Array], Array]
    encode: Callable[[Array], Array]
    round: Callable[[Any], Any] | None = None

    @property
    def unsigned(self) -> np.dtype[Any]:
        """The unsigned numpy dtype as wide as `compute` (integers only)."""
        return np.dtype(f"u{self.compute.itemsize}")

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1))

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1


def _copy(array: Array) -> Array:
    return array.copy()


def _same(array: Array) -> Array:
    return array


def _integer(bits: int) -> Element:
    dtype = np.dtype(f"i{bits // 8}")
    return Element(f"i{bits}", bits, "integer", dtype, dtype, _copy, _same)


def _wide(name: str, dtype: np.dtype[Any]) -> Element:
    return Element(name, dtype.itemsize * 8, "float", dtype, dtype, _copy, _same)


_F32 = np.dtype(np.float32)


def _narrow(name: str, scalar: Any) -> Element:
    dtype = np.dtype(scalar)

    def decode(array: Array) -> Array:
        return array.astype(np.float32)

    def encode(array: Array) -> Array:
        return array.astype(dtype)

    def round_(values: Any) -> Any:
        return values.astype(dtype).astype(np.float32)

    return Element(name, dtype.itemsize * 8, "float", dtype, _F32, decode, encode, round_)


def _i4() -> Element:
    """Four bits in a byte of their own, as in a constant; `pack` puts two into one."""
    dtype = np.dtype(np.uint8)
    return Element(
        "i4",
        4,
        "integer",
        dtype,
        np.dtype(np.int8),
        lambda a: sign_extended(a.astype(np.int8)),
        lambda a: (a & 15).astype(dtype),
    )


def sign_extended(values: Array) -> Array:
    """The low four bits of i8 values, as signed numbers."""
    return ((values & 15) ^ 8) - 8


def _f4() -> Element:
    """f4E2M1FN, which has neither infinity nor NaN."""
    wide = _narrow("f4E2M1FN", ml_dtypes.float4_e2m1fn)
    return replace(wide, bits=4)


# The values of fnv8E5M3FNU, which ml_dtypes lacks, by their bits: 5 bits of exponent, 3 of mantissa, no sign. The last
# is NaN.
_E5M3 = np.array([((b & 7) + 8 * (b > 7)) * 2.0 ** (max(b >> 3, 1) - 18) for b in range(255)] + [np.nan], np.float32)


def _e5m3() -> Element:
    dtype = np.dtype(np.uint8)

    def decode(array: Array) -> Array:
        return _E5M3[array]

    def encode(array: Array) -> Array:
        bits = np.searchsorted(_E5M3[:255], array).astype(dtype)
        return np.where(np.isnan(array), dtype.type(255), bits)

    def round_(values: Any) -> Any:
        """To the nearest, ties to even bits; numbers below zero or too large become NaN."""
        x = np.asarray(values, np.float32)
        above = np.clip(np.searchsorted(_E5M3[:255], x), 1, 254)
        low, high = _E5M3[above - 1], _E5M3[above]
        up = (x - low > high - x) | ((x - low == high - x) & (above % 2 == 0))
        inside = (x >= 0) & (x < _E5M3[254] + (_E5M3[254] - _E5M3[253]) / 2)
        result = np.where(inside, np.where(up, high, low), np.float32(np.nan))
        return result if result.ndim else result[()]

    return Element("fnv8E5M3FNU", 8, "float", dtype, _F32, decode, encode, round_)


def _round_tf32(values: Any) -> Any:
    """Rounds to 10 bits of mantissa, ties to even. A NaN stays a NaN, as its top mantissa bit is not among the 13 bits
    that are removed."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = (bits + (0x0FFF + ((bits >> 13) & 1)).astype(np.uint32)) & np.uint32(0xFFFFE000)
    result = np.where(np.isnan(values), values, rounded.view(np.float32))
    return result if result.ndim else result[()]


_BOOL = np.dtype(np.bool_)

ELEMENTS: dict[str, Element] = {
    element.name: element
    for element in (
        Element("i1", 1, "integer", np.dtype(np.uint8), _BOOL, lambda a: a != 0, lambda a: a.astype(np.uint8)),
        _i4(),
        _integer(8),
        _integer(16),
        _integer(32),
        _integer(64),
        _wide("f32", _F32),
        _wide("f64", np.dtype(np.float64)),
        _narrow("f16", np.float16),
        _narrow("bf16", ml_dtypes.bfloat16),
        _narrow("f8E4M3FN", ml_dtypes.float8_e4m3fn),
        _narrow("f8E5M2", ml_dtypes.float8_e5m2),
        _narrow("f8E8M0FNU", ml_dtypes.float8_e8m0fnu),
        _e5m3(),
        _f4(),
        Element("tf32", 32, "float", _F32, _F32, _copy, _same, _round_tf32),
    )
}
PACKED = ("i4", "f4E2M1FN")  # two share a byte in memory
POINTER = Element("ptr", 64, "pointer", np.dtype(np.int64), np.dtype(np.int64), _copy, _same)
