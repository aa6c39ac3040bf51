"""Element types: how a tile's elements are stored in memory, and how they are computed with.

A tile is a numpy array in the element's `compute` dtype. Floats narrower than f32 (f16, bf16, tf32, f8) are computed
in f32 and rounded back after every operation. Their tiles are f32 arrays that hold only representable values, so a
widening cast costs nothing and a matrix product goes straight to BLAS. A NaN has the bits of its mantissa at the top of
the mantissa of f32, so that none is lost on the way to memory and back. The 24 bits of f32 are at least twice the bits
of a narrow type plus two; therefore rounding twice (to f32, then to the type) equals rounding once for + - * / and the
square root.

An array may have extent 1 where its tile has more: all elements along that dimension are equal. A rank-0 integer is a
Python int (a bool for i1) in the signed range of its type; a rank-0 float is a numpy scalar.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Element:
    """One element type. `decode` reads memory into a new array in `compute`, `encode` gives what to write back, perhaps
    as a view of its argument. `round` rounds values in `compute` to the nearest representable ones, ties to even; it is
    None if all values are representable. `nan`: the NaN that arithmetic makes, in `compute`, see analysis/nans.py."""

    name: str
    bits: int
    kind: Literal["integer", "float", "pointer"]
    storage: np.dtype[Any]
    compute: np.dtype[Any]
    decode: Callable[[Array], Array]
    encode: Callable[[Array], Array]
    round: Callable[[Any], Any] | None = None
    nan: Any = None

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


_F32 = np.dtype(np.float32)


def _f32(bits: int) -> Any:
    return np.uint32(bits).view(np.float32)


def _wide(name: str, dtype: np.dtype[Any], nan: Any = None) -> Element:
    return Element(name, dtype.itemsize * 8, "float", dtype, dtype, _copy, _same, nan=nan)


def _narrow(name: str, scalar: Any, mantissa: int | None = None) -> Element:
    """A float type whose values f32 can hold. `mantissa`: its bits, if the type has more NaNs than one of each sign."""
    dtype, unsigned = np.dtype(scalar), np.dtype(f"u{np.dtype(scalar).itemsize}")
    bits = dtype.itemsize * 8
    table = np.arange(1 << bits).astype(unsigned).view(dtype).astype(_F32)
    if mantissa is not None:
        table = _with_payloads(table, bits, mantissa)

    def decode(array: Array) -> Array:
        return table.take(array.view(unsigned))

    def encode(array: Array) -> Array:
        array = np.asarray(array)
        stored = np.asarray(array.astype(dtype))
        if mantissa is not None and (nan := np.isnan(array)).any():
            stored.view(unsigned)[nan] = _narrowed(array[nan].view(np.uint32), bits, mantissa)
        return stored

    def round_(values: Any) -> Any:
        return values.astype(dtype).astype(_F32)

    positive, last = table[(1 << (bits - 1)) - 1], table[-1]
    nan = positive if np.isnan(positive) else last if np.isnan(last) else None
    return Element(name, bits, "float", dtype, _F32, decode, encode, round_, nan)


def _with_payloads(table: Array, bits: int, mantissa: int) -> Array:
    """The f32 values of all codes of a type, with the mantissas of its NaNs, which a conversion may change."""
    codes = np.arange(1 << bits, dtype=np.uint32)
    payload = 0x7F800000 | (codes & ((1 << mantissa) - 1)) << (23 - mantissa) | codes >> (bits - 1) << 31
    return np.where(np.isnan(table), payload.astype(np.uint32).view(_F32), table)


def _narrowed(words: Array, bits: int, mantissa: int) -> Array:
    """The codes of NaNs from their bits in f32."""
    exponent = (1 << (bits - 1)) - (1 << mantissa)
    return exponent | words >> (23 - mantissa) & ((1 << mantissa) - 1) | words >> 31 << (bits - 1)


def _bf16() -> Element:
    """bf16 is the upper half of f32."""
    dtype = np.dtype(ml_dtypes.bfloat16)
    fields = [("lower", dtype), ("upper", dtype)]
    halves = np.dtype(fields if sys.byteorder == "little" else fields[::-1])

    def decode(array: Array) -> Array:
        return array.astype(_F32)

    def encode(array: Array) -> Array:
        return array.view(halves)["upper"]

    def round_(values: Any) -> Any:
        return values.astype(dtype).astype(_F32)

    return Element("bf16", 16, "float", dtype, _F32, decode, encode, round_, _f32(0x7FFF0000))


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
        _wide("f32", _F32, _f32(0x7FFFFFFF)),
        _wide("f64", np.dtype(np.float64)),
        _narrow("f16", np.float16, mantissa=10),
        _bf16(),
        _narrow("f8E4M3FN", ml_dtypes.float8_e4m3fn),
        _narrow("f8E5M2", ml_dtypes.float8_e5m2, mantissa=2),
        _narrow("f8E8M0FNU", ml_dtypes.float8_e8m0fnu),
        _e5m3(),
        _f4(),
        Element("tf32", 32, "float", _F32, _F32, _copy, _same, _round_tf32, _f32(0x7FFFFFFF)),
    )
}
PACKED = ("i4", "f4E2M1FN")  # two share a byte in memory
POINTER = Element("ptr", 64, "pointer", np.dtype(np.int64), np.dtype(np.int64), _copy, _same)
