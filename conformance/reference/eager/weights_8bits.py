"""Products over weights of 8 bits alone."""

from __future__ import annotations

from .products import linear_split_k, swiglu
from .rounding import F32, Array, f32, rounded
from .rows import gelu, layernorm


def linear_weight_i8(x: Array, weight: Array, weight_scales: Array, bias: Array, *, dtype: str) -> Array:
    return rounded(f32(x) @ f32(weight).T * f32(weight_scales) + f32(bias), dtype)


def linear_gelu_weight_i8(x: Array, weight: Array, weight_scales: Array, bias: Array, *, dtype: str) -> Array:
    return gelu(linear_weight_i8(x, weight, weight_scales, bias, dtype=dtype), dtype=dtype)


def linear_residual_weight_i8(
    x: Array, weight: Array, weight_scales: Array, bias: Array, residual: Array, *, dtype: str
) -> Array:
    return rounded(f32(residual) + f32(linear_weight_i8(x, weight, weight_scales, bias, dtype=dtype)), dtype)


def swiglu_weight_i8(x: Array, gate: Array, gate_scales: Array, up: Array, up_scales: Array, *, dtype: str) -> Array:
    return swiglu(x, f32(gate).T * f32(gate_scales), f32(up).T * f32(up_scales), dtype=dtype)


def linear_split_k_weight_i8(x: Array, weight: Array, weight_scales: Array, partial: Array, *, dtype: str) -> F32:
    return linear_split_k(x, f32(weight).T * f32(weight_scales), partial, dtype=dtype)


def layernorm_linear_weight_i8(
    x: Array, norm_weight: Array, norm_bias: Array, weight: Array, weight_scales: Array, bias: Array, eps: float, *,
    dtype: str,
) -> Array:  # fmt: skip
    normed = layernorm(x, norm_weight, norm_bias, eps, dtype=dtype)
    return linear_weight_i8(normed, weight, weight_scales, bias, dtype=dtype)


def layernorm_linear_gelu_weight_i8(
    x: Array, norm_weight: Array, norm_bias: Array, weight: Array, weight_scales: Array, bias: Array, eps: float, *,
    dtype: str,
) -> Array:  # fmt: skip
    made = layernorm_linear_weight_i8(x, norm_weight, norm_bias, weight, weight_scales, bias, eps, dtype=dtype)
    return gelu(made, dtype=dtype)


linear_split_k_weight_f8, layernorm_linear_weight_f8 = linear_split_k_weight_i8, layernorm_linear_weight_i8

layernorm_linear_gelu_weight_f8 = layernorm_linear_gelu_weight_i8

linear_weight_f8, linear_gelu_weight_f8 = linear_weight_i8, linear_gelu_weight_i8

linear_residual_weight_f8, swiglu_weight_f8 = linear_residual_weight_i8, swiglu_weight_i8
