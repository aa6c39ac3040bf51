"""out = (x - mean) / sqrt(variance + eps) * weight + bias, over rows of any width"""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]


@ct.kernel
def layernorm(x, weight, bias, out, eps, BC: ConstInt):
    """One block makes one row in tiles of BC columns, in three passes: the mean, the variance of the deviations from it
    (a one-pass variance cancels when the mean is large), the result. All in f32."""
    n = ct.bid(0)
    width = x.shape[1]
    steps = ct.cdiv(width, BC)

    sums = ct.zeros((1, BC), ct.float32)
    for j in range(steps):
        sums += ct.load(x, index=(n, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    mean = ct.sum(sums, axis=1, keepdims=True) / width

    squares = ct.zeros((1, BC), ct.float32)
    for j in range(steps):
        value = ct.load(x, index=(n, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        # Columns past the width were padded with zeros, which deviate from the mean: they must not count.
        inside = (j * BC + ct.arange(BC, dtype=ct.int32)) < width
        deviation = ct.where(inside[None, :], value - mean, 0.0)
        squares += deviation * deviation
    variance = ct.sum(squares, axis=1, keepdims=True) / width
    inverse = 1.0 / ct.sqrt(variance + eps)

    for j in range(steps):
        value = ct.load(x, index=(n, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        gain = ct.load(weight, index=(j,), shape=(BC,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        shift = ct.load(bias, index=(j,), shape=(BC,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        result = (value - mean) * inverse * gain[None, :] + shift[None, :]
        ct.store(out, index=(n, j), tile=result.astype(out.dtype))


@ct.kernel
def layernorm_row(x, weight, bias, out, eps, R: ConstInt, BC: ConstInt):
    """One block makes R rows of at most BC columns, which stay in registers: x is read once."""
    n = ct.bid(0)
    width = x.shape[1]
    zero = ct.PaddingMode.ZERO
    value = ct.load(x, index=(n, 0), shape=(R, BC), padding_mode=zero, allow_tma=False).astype(ct.float32)
    gain = ct.load(weight, index=(0,), shape=(BC,), padding_mode=zero, allow_tma=False).astype(ct.float32)
    shift = ct.load(bias, index=(0,), shape=(BC,), padding_mode=zero, allow_tma=False).astype(ct.float32)
    mean = ct.sum(value, axis=1, keepdims=True) / width
    inside = (ct.arange(BC, dtype=ct.int32) < width)[None, :]
    deviation = ct.where(inside, value - mean, 0.0)
    variance = ct.sum(deviation * deviation, axis=1, keepdims=True) / width
    result = deviation * ct.rsqrt(variance + eps) * gain[None, :] + shift[None, :]
    ct.store(out, index=(n, 0), tile=result.astype(out.dtype), allow_tma=False)


@ct.kernel
def residual_layernorm(partial, bias, norm_weight, norm_bias, x, out, eps, BZ: ConstInt, BC: ConstInt):
    """One block makes one row of at most BC columns, which stays in registers: it adds up the parts of a product, BZ at
    a time, and the residual, and norms the sum."""
    n = ct.bid(0)
    width = x.shape[1]
    zero = ct.PaddingMode.ZERO
    value = ct.load(x, index=(n, 0), shape=(1, BC), padding_mode=zero, allow_tma=False).astype(ct.float32)
    value += ct.load(bias, index=(0,), shape=(BC,), padding_mode=zero, allow_tma=False).astype(ct.float32)[None, :]
    for z in range(ct.cdiv(partial.shape[0], BZ)):
        parts = ct.load(partial, index=(z, n, 0), shape=(BZ, 1, BC), padding_mode=zero, allow_tma=False)
        value += ct.sum(parts.reshape((BZ, BC)), axis=0, keepdims=True)
    rounded = value.astype(x.dtype)
    ct.store(x, index=(n, 0), tile=rounded, allow_tma=False)
    value = rounded.astype(ct.float32)
    gain = ct.load(norm_weight, index=(0,), shape=(BC,), padding_mode=zero, allow_tma=False).astype(ct.float32)
    shift = ct.load(norm_bias, index=(0,), shape=(BC,), padding_mode=zero, allow_tma=False).astype(ct.float32)
    mean = ct.sum(value, axis=1, keepdims=True) / width
    inside = (ct.arange(BC, dtype=ct.int32) < width)[None, :]
    deviation = ct.where(inside, value - mean, 0.0)
    variance = ct.sum(deviation * deviation, axis=1, keepdims=True) / width
    result = deviation * ct.rsqrt(variance + eps) * gain[None, :] + shift[None, :]
    ct.store(out, index=(n, 0), tile=result.astype(out.dtype), allow_tma=False)
