"""Products whose operands are numbers of 8 bits with scales, and what rounds rows to them."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .arrays import F32, F64, Array, f64
from .rows import gelu, layernorm

LARGEST = 448.0  # of f8E4M3FN
LARGEST_I8 = 127.0


def quantize_rows(x: Array) -> tuple[F64, F64]:
    """The op says in which precision it computes and rounds, so these are the very numbers that it stores."""
    quotients, scales = _within(x, LARGEST)
    return f64(quotients.astype(ml_dtypes.float8_e4m3fn)), f64(scales)


def quantize_rows_i8(x: Array) -> tuple[F64, F64]:
    """The very numbers, as of `quantize_rows`."""
    quotients, scales = _within(x, LARGEST_I8)
    return f64(np.clip(np.rint(quotients), -LARGEST_I8, LARGEST_I8)), f64(scales)


def _within(x: Array, most: float) -> tuple[F32, F32]:
    """Rows that are divided by their scales, so that the largest is `most`, and the scales."""
    x = np.asarray(x, np.float32)
    scales = np.maximum(np.abs(x).max(axis=-1) / np.float32(most), np.finfo(np.float32).smallest_normal)
    return x * (np.float32(1) / scales[:, None]), scales


def linear_f8(x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array) -> F64:
    return f64(x) @ f64(weight).T * f64(x_scales)[:, None] * f64(weight_scales) + f64(bias)


def linear_gelu_f8(x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array) -> F64:
    return gelu(linear_f8(x, x_scales, weight, weight_scales, bias))


def layernorm_f8(x: Array, weight: Array, bias: Array, eps: float) -> tuple[F64, F64]:
    """Without the rounding of its last step, so that a result on the other side of a tie is no error."""
    return _normed_within(x, weight, bias, eps, LARGEST)


def layernorm_i8(x: Array, weight: Array, bias: Array, eps: float) -> tuple[F64, F64]:
    return _normed_within(x, weight, bias, eps, LARGEST_I8)


def _normed_within(x: Array, weight: Array, bias: Array, eps: float, most: float) -> tuple[F64, F64]:
    exact = layernorm(x, weight, bias, eps)
    scales = np.maximum(np.abs(exact).max(axis=-1) / most, np.finfo(np.float32).smallest_normal)
    return exact / scales[:, None], scales


def linear_gelu_f8_to_f8(
    x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, factors: Array
) -> F64:
    """Without the rounding of its last step."""
    return linear_gelu_f8(x, x_scales, weight, weight_scales, bias) * f64(factors)


def linear_residual_f8(
    x: Array, x_scales: Array, weight: Array, weight_scales: Array, bias: Array, residual: Array
) -> F64:
    return f64(residual) + linear_f8(x, x_scales, weight, weight_scales, bias)


# Integers have the same formulas as 8-bit floats.
linear_i8, linear_gelu_i8, linear_residual_i8 = linear_f8, linear_gelu_f8, linear_residual_f8
