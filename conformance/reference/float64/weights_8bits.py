"""Products over weights of 8 bits alone."""

from __future__ import annotations

from .arrays import F64, Array, f64
from .products import linear_split_k, swiglu
from .rows import gelu, layernorm


def linear_weight_i8(x: Array, weight: Array, weight_scales: Array, bias: Array) -> F64:
    return f64(x) @ f64(weight).T * f64(weight_scales) + f64(bias)


def linear_gelu_weight_i8(x: Array, weight: Array, weight_scales: Array, bias: Array) -> F64:
    return gelu(linear_weight_i8(x, weight, weight_scales, bias))


def linear_residual_weight_i8(x: Array, weight: Array, weight_scales: Array, bias: Array, residual: Array) -> F64:
    return f64(residual) + linear_weight_i8(x, weight, weight_scales, bias)


def swiglu_weight_i8(x: Array, gate: Array, gate_scales: Array, up: Array, up_scales: Array) -> F64:
    return swiglu(x, f64(gate).T * f64(gate_scales), f64(up).T * f64(up_scales))


def linear_split_k_weight_i8(x: Array, weight: Array, weight_scales: Array, partial: Array) -> F64:
    return linear_split_k(x, f64(weight).T * f64(weight_scales), partial)


def layernorm_linear_weight_i8(
    x: Array, norm_weight: Array, norm_bias: Array, weight: Array, weight_scales: Array, bias: Array, eps: float
) -> F64:
    return linear_weight_i8(layernorm(x, norm_weight, norm_bias, eps), weight, weight_scales, bias)


def layernorm_linear_gelu_weight_i8(
    x: Array, norm_weight: Array, norm_bias: Array, weight: Array, weight_scales: Array, bias: Array, eps: float
) -> F64:
    return gelu(layernorm_linear_weight_i8(x, norm_weight, norm_bias, weight, weight_scales, bias, eps))


linear_split_k_weight_f8, layernorm_linear_weight_f8 = linear_split_k_weight_i8, layernorm_linear_weight_i8

layernorm_linear_gelu_weight_f8 = layernorm_linear_gelu_weight_i8

linear_weight_f8, linear_gelu_weight_f8 = linear_weight_i8, linear_gelu_weight_i8

linear_residual_weight_f8, swiglu_weight_f8 = linear_residual_weight_i8, swiglu_weight_i8
