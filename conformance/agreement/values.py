"""The elements that each operation is tried on: edge values of its dtypes, all pairs of them, and random bits.

Where an operation's result is undefined for some elements, these are replaced: a divisor of zero, the smallest integer
divided by -1, a shift by as many bits as there are or more, a float that an integer type cannot hold.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .cases import COUNT, FLOATS, Case

Array = NDArray[Any]
NUMPY: dict[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64), "f32": np.dtype(np.float32), "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16), "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2), "i64": np.dtype(np.int64), "i32": np.dtype(np.int32),
    "i16": np.dtype(np.int16), "i8": np.dtype(np.int8), "i1": np.dtype(np.int8),
}  # fmt: skip
_NANS = {64: (0x7FF8 << 48, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF), 32: (0x7FC00000, 0x7F800001, 0xFFFFFFFF)}


def operands(case: Case) -> list[Array]:
    """The elements of each operand, (COUNT,) of its dtype. The same on every machine."""
    rng = np.random.default_rng(list(case.name.encode()))
    kinds = [NUMPY[dtype] for dtype in case.operands]
    if len(kinds) == 1:
        found = [_one(kinds[0], case.operands[0] in FLOATS, rng)]
    else:
        found = _pairs(case, kinds, rng)
    return _defined(case, found)


def _one(kind: np.dtype[Any], is_float: bool, rng: np.random.Generator) -> Array:
    if kind.itemsize <= 2:  # every value
        return np.arange(COUNT, dtype=np.uint32).astype(f"u{kind.itemsize}").view(kind)
    made = _random(kind, is_float, rng)
    edges = _edges(kind, is_float)
    made[: len(edges)] = edges
    return made


def _pairs(case: Case, kinds: list[np.dtype[Any]], rng: np.random.Generator) -> list[Array]:
    floats = [dtype in FLOATS for dtype in case.operands]
    if len(kinds) == 2 and kinds[0].itemsize == 1:  # every pair
        one, other = np.divmod(np.arange(COUNT), 256)
        return [one.astype(np.uint8).view(kinds[0]), other.astype(np.uint8).view(kinds[1])]
    made = [_random(kind, is_float, rng) for kind, is_float in zip(kinds, floats, strict=True)]
    edges = [_edges(kind, is_float) for kind, is_float in zip(kinds, floats, strict=True)]
    counts = [len(of) for of in edges]
    grid = np.unravel_index(np.arange(min(COUNT // 2, int(np.prod(counts)))), counts)
    for array, of, index in zip(made, edges, grid, strict=True):
        array[: len(index)] = of[index]
    return made


def _random(kind: np.dtype[Any], is_float: bool, rng: np.random.Generator) -> Array:
    """Half random bits, half of a size at which functions have something to do."""
    bits = rng.integers(0, 256, COUNT * kind.itemsize, np.uint8).view(kind)
    usual = rng.standard_normal(COUNT) * 8 if is_float else rng.integers(-100, 100, COUNT)
    with np.errstate(over="ignore"):
        bits[1::2] = usual[1::2].astype(kind)
    return bits


def _edges(kind: np.dtype[Any], is_float: bool) -> Array:
    """Zeros, ones, extremes, ties; of floats also denormals, infinities and NaN of several kinds, in either sign."""
    bits = 8 * kind.itemsize
    if not is_float:
        top = 2 ** (bits - 1)
        return np.array([0, 1, 2, 3, 7, bits - 1, top - 1, top - 2, -1, -2, -3, -7, -top, 1 - top]).astype(kind)
    info = ml_dtypes.finfo(kind)
    least, tiny = float(info.smallest_subnormal), float(info.tiny)
    usual = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, np.pi, 127.5, 0.1]
    positive = np.array([*usual, least, 3 * least, tiny, 0.75 * tiny, info.max, 1 + float(info.eps), np.inf], float)
    with np.errstate(over="ignore", under="ignore"):
        values = np.concatenate([positive, -positive]).astype(kind)
    sign = 1 << (bits - 1)
    exponent = int(np.array(np.inf).astype(kind).view(f"u{kind.itemsize}")) & (sign - 1)
    nans = _NANS.get(bits, (exponent | 1, sign - 1, exponent | (1 << (info.nmant - 1)), 2 * sign - 1))
    return np.concatenate([values, np.array(nans, f"u{kind.itemsize}").view(kind)])


def _defined(case: Case, made: list[Array]) -> list[Array]:
    signed = "unsigned" not in case.mode
    if case.op in ("divi", "remi"):
        one, other = made
        other[other == 0] = 1
        if signed:
            other[(other == -1) & (one == np.iinfo(one.dtype).min)] = 1
    if case.op in ("shli", "shri"):
        made[1] = (made[1].view(f"u{made[1].itemsize}") % np.uint8(8 * made[1].itemsize)).view(made[1].dtype)
    if case.op == "ftoi" and case.result != "i1":
        bits = 8 * NUMPY[case.result].itemsize
        low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
        with np.errstate(invalid="ignore"):
            wide = np.trunc(made[0].astype(np.float64))
            made[0][~((wide >= low) & (wide < high))] = 0
    return made
