"""out = x / sqrt(mean of x^2 + eps) * weight, over rows of any width"""

from __future__ import annotations

import cuda.tile as ct

from .layernorm import block, vector

ConstInt = ct.Constant[int]


def inverse_root(square_sum, width, eps):
    """1 / sqrt(sum of squares / width + eps) of each row."""
    return ct.rsqrt(square_sum / width + eps)


@ct.kernel
def rmsnorm(x, weight, out, eps, BC: ConstInt):
    """One block makes one row in tiles of BC columns, in two passes."""
    n = ct.bid(0)
    steps = ct.cdiv(x.shape[1], BC)
    squares = ct.zeros((1, BC), ct.float32)
    for j in range(steps):
        value = ct.load(x, index=(n, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        squares = value * value + squares
    inverse = inverse_root(ct.sum(squares, axis=1, keepdims=True), x.shape[1], eps)
    for j in range(steps):
        value = ct.load(x, index=(n, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        gain = ct.load(weight, index=(j,), shape=(BC,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        ct.store(out, index=(n, j), tile=(value * inverse * gain[None, :]).astype(out.dtype))


@ct.kernel
def rmsnorm_resident(x, weight, out, eps, R: ConstInt, BC: ConstInt):
    """One block makes R rows of at most BC columns, which stay in registers: x is read once."""
    n = ct.bid(0)
    gain = vector(weight, BC)
    ct.grid_dependency_control_wait()
    value = block(x, n, R, BC)
    inverse = inverse_root(ct.sum(value * value, axis=1, keepdims=True), x.shape[1], eps)
    ct.store(out, index=(n, 0), tile=(value * inverse * gain).astype(out.dtype), allow_tma=False)
