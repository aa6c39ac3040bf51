"""Products that give, or take, the sums of squares of their rows."""

from __future__ import annotations

import numpy as np

from .arrays import F64, Array, f64
from .products import linear_residual, swiglu
from .rows import gelu


def linear_residual_squares(x: Array, weight: Array, bias: Array, residual: Array, squares: Array) -> tuple[F64, F64]:
    """`linear_residual`, and the row sums of squares of its result, in as many parts as `squares` has. `squares` may
    have more rows than x; there the input is zeros, so the result is the bias."""
    out = linear_residual(x, weight, bias, residual)
    behind = np.broadcast_to(f64(bias), (squares.shape[1] - len(x), len(bias)))
    return out, parts_of_squares(np.concatenate([out, behind]), len(squares))


def parts_of_squares(rows: Array, count: int) -> F64:
    """Row sums of squares (count, L): the columns of a row are split into `count` parts, each whole steps of 32."""
    steps = (rows.shape[1] + 31) // 32
    size = 32 * ((steps + count - 1) // count)
    return np.stack([(f64(rows[:, z * size : (z + 1) * size]) ** 2).sum(axis=1) for z in range(count)])


def rms_linear(x: Array, squares: Array, weight: Array, bias: Array, eps: float) -> F64:
    out = f64(x) @ f64(weight)
    out /= root_mean_square(squares, x, eps)
    out += f64(bias)
    return out


def root_mean_square(squares: Array, x: Array, eps: float) -> F64:
    """The root mean square (M, 1) of the rows of x (M, K). `squares` (Z, L): their sums of squares, in Z parts."""
    return np.sqrt(f64(squares).sum(axis=0)[: len(x), None] / x.shape[1] + eps)


def rms_linear_gelu(x: Array, squares: Array, weight: Array, bias: Array, eps: float) -> F64:
    return gelu(rms_linear(x, squares, weight, bias, eps))


def rms_swiglu(x: Array, squares: Array, gate: Array, up: Array, eps: float) -> F64:
    return swiglu(f64(x) / root_mean_square(squares, x, eps), gate, up)
