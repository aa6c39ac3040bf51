"""Literals to bits and back, for every scalar type."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Attribute

from .dialect import types as t
from .dialect.attrs import DenseAttr

_NUMPY: dict[Attribute, np.dtype[Any]] = {
    t.f16: np.dtype(np.float16), t.bf16: np.dtype(ml_dtypes.bfloat16),
    t.f32: np.dtype(np.float32), t.f64: np.dtype(np.float64),
    t.f8e4m3fn: np.dtype(ml_dtypes.float8_e4m3fn), t.f8e5m2: np.dtype(ml_dtypes.float8_e5m2),
    t.f8e8m0fnu: np.dtype(ml_dtypes.float8_e8m0fnu), t.f4e2m1fn: np.dtype(ml_dtypes.float4_e2m1fn),
}  # fmt: skip


# The value of each bit pattern of fnv8E5M3FNU, which numpy lacks. The last pattern is NaN; the number listed for it is
# what the next larger value would be, so that numbers above the largest round to NaN.
_E5M3 = [((bits & 7) + 8 * (bits > 7)) * 2.0 ** (max(bits >> 3, 1) - 18) for bits in range(256)]


def float_bits(value: float, kind: Attribute) -> int:
    """The bits of a float rounded to a type, ties to even."""
    if kind == t.f8e5m3fnu:
        if not 0 <= value < math.inf:
            return 0xFF
        return min(range(256), key=lambda bits: (abs(_E5M3[bits] - value), bits & 1))
    if kind == t.tf32:
        # f32 with its 13 lowest mantissa bits rounded away
        bits = float_bits(value, t.f32)
        return bits >> 13 if not math.isfinite(value) else (bits + 0xFFF + (bits >> 13 & 1)) >> 13
    with np.errstate(over="ignore"):
        raw = np.asarray(value, np.float64).astype(_NUMPY[kind]).tobytes()
    return int.from_bytes(raw, "little")


def float_value(bits: int, kind: Attribute) -> float:
    if kind == t.f8e5m3fnu:
        return math.nan if bits == 0xFF else _E5M3[bits]
    if kind == t.tf32:
        return struct.unpack("<f", struct.pack("<I", bits << 13))[0]
    raw = bits.to_bytes(t.byte_width(kind), "little")
    return float(np.frombuffer(raw, _NUMPY[kind])[0])


def parse_number(text: str, token_kind: str, kind: Attribute, *, overflows: bool = False) -> int:
    """The bits of a literal. `overflows`: a float that is too large for its type is an infinity, if the type has one.
    Raises ValueError saying what is wrong with the literal."""
    name, width = t.SCALARS[kind]
    if token_kind == "hex":
        bits = int(text, 16)
        if bits >> width:
            raise ValueError(f"{text} has more than the {width} bits of {name}")
        return bits
    if kind in t.FLOATS:
        if token_kind not in ("float", "int"):
            raise ValueError(f"{text!r} is not a number of type {name}")
        if float(text) < 0 and kind in (t.f8e5m3fnu, t.f8e8m0fnu):
            raise ValueError(f"{text} is negative, and {name} has no sign")
        bits = float_bits(float(text), kind)
        value = float_value(bits, kind)
        if not math.isfinite(value) and not (overflows and math.isinf(value)):
            raise ValueError(f"{text} does not fit into {name}: write an infinity or NaN as its bits, in hexadecimal")
        return bits
    if kind == t.i1 and text in ("true", "false"):
        return int(text == "true")
    if token_kind != "int":
        raise ValueError(f"{text!r} is not a number of type {name}")
    value = int(text) if len(text) <= 20 else 1 << 64
    if not -(1 << (width - 1)) <= value < 1 << width:
        raise ValueError(f"{text if len(text) < 40 else f'a number of {len(text)} digits'} does not fit into {name}")
    return value & ((1 << width) - 1)


def spell_number(bits: int, kind: Attribute) -> str:
    """The literal of these bits: decimal if that reads back to them, hexadecimal otherwise."""
    width = t.SCALARS[kind][1]
    if kind == t.i1:
        return "true" if bits else "false"
    if kind in t.INTEGERS:
        return str(bits - (1 << width) if bits >> (width - 1) else bits)
    value = float_value(bits, kind)
    if math.isfinite(value):
        for digits in (6, 9, 16):
            text = f"{value:.{digits}e}"
            if float_bits(float(text), kind) == bits:
                return text
    return f"0x{bits:0{(width + 3) // 4}X}"


def splat_bytes(bits: int, kind: Attribute) -> bytes:
    """The bytes of one element of a constant, or of the single element that a splat stores for all."""
    return (b"\xff" if bits else b"\x00") if kind == t.i1 else bits.to_bytes(t.byte_width(kind), "little")


def dense_bytes(elements: Sequence[int], kind: Attribute) -> bytes:
    """The bytes in which a constant stores all its elements; i1 is packed eight to a byte."""
    if kind == t.i1:
        packed = sum(bit << i for i, bit in enumerate(elements))
        return packed.to_bytes((len(elements) + 7) // 8, "little")
    return b"".join(splat_bytes(bits, kind) for bits in elements)


def elements_of(value: DenseAttr) -> list[int]:
    """The bits of each element. For a splat the list has one item."""
    kind, raw = value.type.element_type, value.raw
    if value.is_splat:
        return [raw[0] & 1 if kind == t.i1 else int.from_bytes(raw, "little")]
    if kind == t.i1:
        packed = int.from_bytes(raw, "little")
        return [packed >> i & 1 for i in range(math.prod(value.type.shape))]
    width = t.byte_width(kind)
    return [int.from_bytes(raw[i : i + width], "little") for i in range(0, len(raw), width)]
