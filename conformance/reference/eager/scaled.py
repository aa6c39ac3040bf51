"""Products whose operands are numbers of 8 bits with scales, and what rounds rows to them."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .. import float64
from .rounding import F32, Array, f32, rounded
from .rows import gelu, layernorm


def quantize_rows(x: Array, *, dtype: str) -> tuple[Array, F32]:
    del dtype
    rows, scales = float64.quantize_rows(x)
    return rows.astype(ml_dtypes.float8_e4m3fn), f32(scales)


def quantize_rows_i8(x: Array, *, dtype: str) -> tuple[Array, F32]:
    del dtype
    rows, scales = float64.quantize_rows_i8(x)
    return rows.astype(np.int8), f32(scales)


def linear_f8(x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, *, dtype: str) -> Array:
    product = f32(x) @ f32(weight).T
    return rounded(product * f32(x_scales)[:, None] * f32(weight_scales) + f32(bias), dtype)


def linear_gelu_f8(x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, *, dtype: str) -> Array:
    return gelu(linear_f8(x, x_scales, weight, weight_scales, bias, dtype=dtype), dtype=dtype)


def layernorm_f8(x: Array, weight: Array, bias: Array, eps: float, *, dtype: str) -> tuple[Array, F32]:
    return quantize_rows(layernorm(x, weight, bias, eps, dtype="f32"), dtype=dtype)


def layernorm_i8(x: Array, weight: Array, bias: Array, eps: float, *, dtype: str) -> tuple[Array, F32]:
    return quantize_rows_i8(layernorm(x, weight, bias, eps, dtype="f32"), dtype=dtype)


def linear_gelu_f8_to_f8(
    x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, factors: Array, *, dtype: str
) -> Array:
    made = linear_gelu_f8(x, x_scales, weight, weight_scales, bias, dtype=dtype)
    return np.clip(f32(made) * f32(factors), -float64.LARGEST, float64.LARGEST).astype(ml_dtypes.float8_e4m3fn)


def linear_residual_f8(
    x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, residual: Array, *, dtype: str
) -> Array:
    return rounded(f32(residual) + f32(linear_f8(x, x_scales, weight, weight_scales, bias, dtype=dtype)), dtype)


# Integers have the same formulas as 8-bit floats.
linear_i8, linear_gelu_i8, linear_residual_i8 = linear_f8, linear_gelu_f8, linear_residual_f8
