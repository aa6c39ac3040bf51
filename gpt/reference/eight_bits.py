"""The eager ops of a quantized model: products round their rows to 8 bits first; all other ops are the usual ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.reference import eager
from conformance.reference.eager import attention, embedding, layernorm

from ..parameters import quantize

__all__ = ["attention", "embedding", "layernorm", "linear", "linear_gelu", "linear_residual", "logits", "paired"]

Array = NDArray[Any]
Pair = tuple[Array, Array]  # a weight (N, K) in 8 bits, and its scales (N, 1)


def paired(weights: Mapping[str, Array]) -> dict[str, Any]:
    """The tensors of a quantized model, with a weight and its scales as one."""
    found: dict[str, Any] = {name: each for name, each in weights.items() if not name.endswith(quantize.SCALE)}
    scaled = [name for name in found if quantize.scale_of(name) in weights]
    return found | {name: (weights[name], weights[quantize.scale_of(name)]) for name in scaled}


def linear(x: Array, weight: Pair, bias: Array, *, dtype: str) -> Array:
    return _product("linear", x, weight, bias, dtype=dtype)


def linear_gelu(x: Array, weight: Pair, bias: Array, *, dtype: str) -> Array:
    """Rows by rows as the others. In f8 the model divides the hidden layer by one number instead, see
    gpt2_f8.hidden_step."""
    return _product("linear_gelu", x, weight, bias, dtype=dtype)


def linear_residual(x: Array, weight: Pair, bias: Array, residual: Array, *, dtype: str) -> Array:
    rows = residual.reshape(-1, residual.shape[-1])
    return _product("linear_residual", x, weight, bias, rows, dtype=dtype)


def logits(x: Array, weight: Array | Pair, *, dtype: str) -> Array:
    if not isinstance(weight, tuple):
        return eager.logits(x, weight, dtype=dtype)
    return _product("linear", x, weight, np.zeros(len(weight[0]), np.float32), dtype=dtype)


def _product(op: str, x: Array, weight: Pair, *others: Array, dtype: str) -> Array:
    """The op on all rows of x (..., K)."""
    stored, columns = weight
    integers = stored.dtype == quantize.I8.dtype
    round_rows, kind = (eager.quantize_rows_i8, "i8") if integers else (eager.quantize_rows, "f8")
    rounded, scales = round_rows(x.reshape(-1, x.shape[-1]), dtype=dtype)
    out = getattr(eager, f"{op}_{kind}")(rounded, scales, stored, columns[:, 0], *others, dtype=dtype)
    return out.reshape(*x.shape[:-1], -1)
