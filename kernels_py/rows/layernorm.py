"""out = (x - mean) / sqrt(variance + eps) * weight + bias, over rows of any width"""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import add_both

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


def vector(array, BC):
    """A vector of at most BC elements, as a line (1, BC) in f32; zeros past its end."""
    zero = ct.PaddingMode.ZERO
    return ct.load(array, index=(0,), shape=(BC,), padding_mode=zero, allow_tma=False).astype(ct.float32)[None, :]


def block(array, n, R, BC):
    """R rows of at most BC columns in f32; zeros past the end."""
    zero = ct.PaddingMode.ZERO
    return ct.load(array, index=(n, 0), shape=(R, BC), padding_mode=zero, allow_tma=False).astype(ct.float32)


def normed(value, gain, shift, width, eps):
    """The norm of rows that stay in registers, in two passes: mean, then variance."""
    mean = ct.sum(value, axis=1, keepdims=True) / width
    inside = (ct.arange(value.shape[1], dtype=ct.int32) < width)[None, :]
    deviation = ct.where(inside, value - mean, 0.0)
    variance = ct.sum(deviation * deviation, axis=1, keepdims=True) / width
    return deviation * ct.rsqrt(variance + eps) * gain + shift


def normed_once(value, first, gain, shift, width, eps):
    """The same in one pass over the differences from each row's first element. They are at most sqrt(width) standard
    deviations from the mean, so that what cancels in the variance costs it at most a relative width * 2^-24: good
    enough for results of 16 bits, not for f32."""
    inside = (ct.arange(value.shape[1], dtype=ct.int32) < width)[None, :]
    value = ct.where(inside, value - first, 0.0)
    total, squares = ct.reduce((value, value * value), 1, add_both, (0.0, 0.0), keepdims=True)
    mean = total / width
    variance = ct.maximum(squares / width - mean * mean, 0.0)
    return (value - mean) * ct.rsqrt(variance + eps) * gain + shift


@ct.kernel
def layernorm_two_pass(x, weight, bias, out, eps, R: ConstInt, BC: ConstInt):
    """One block makes R rows of at most BC columns, which stay in registers: x is read once."""
    n = ct.bid(0)
    gain, shift = vector(weight, BC), vector(bias, BC)
    ct.grid_dependency_control_wait()
    result = normed(block(x, n, R, BC), gain, shift, x.shape[1], eps)
    ct.store(out, index=(n, 0), tile=result.astype(out.dtype), allow_tma=False)


@ct.kernel
def layernorm_single_pass(x, weight, bias, out, eps, R: ConstInt, BC: ConstInt):
    """layernorm_two_pass with one pass for mean and variance."""
    n = ct.bid(0)
    gain, shift = vector(weight, BC), vector(bias, BC)
    ct.grid_dependency_control_wait()
    result = normed_once(block(x, n, R, BC), block(x, n, R, 1), gain, shift, x.shape[1], eps)
    ct.store(out, index=(n, 0), tile=result.astype(out.dtype), allow_tma=False)


def part(array, j, B):
    """Elements j B to (j + 1) B of a vector, as a line (1, B) in f32."""
    return ct.load(array, index=(j,), shape=(B,), allow_tma=False).astype(ct.float32)[None, :]


def rows_part(array, n, j, R, B):
    """Columns j B to (j + 1) B of R rows in f32; zeros behind the last row."""
    zero = ct.PaddingMode.ZERO
    return ct.load(array, index=(n, j), shape=(R, B), padding_mode=zero, allow_tma=False).astype(ct.float32)


def sums(value):
    """The sum and the sum of squares of each row, (R, 1) each."""
    return ct.reduce((value, value * value), 1, add_both, (0.0, 0.0), keepdims=True)


def norm_of_two_tiles(x, weight, bias, eps, n, right, R, BC, BR):
    """What block n of rows is normed with. A row has BC + BR columns, in two parts. Returned are for each part the
    differences from the row's first element, the gain and the shift; then the mean of the differences and the inverse
    of the standard deviation. It reads the row once. The right part begins at column right * BR."""
    gain, shift = part(weight, 0, BC), part(bias, 0, BC)
    gain_right, shift_right = part(weight, right, BR), part(bias, right, BR)
    ct.grid_dependency_control_wait()
    first = rows_part(x, n, 0, R, 1)
    left, rest = rows_part(x, n, 0, R, BC) - first, rows_part(x, n, right, R, BR) - first
    (total, squares), (rest_total, rest_squares) = sums(left), sums(rest)
    mean = (total + rest_total) / x.shape[1]
    variance = ct.maximum((squares + rest_squares) / x.shape[1] - mean * mean, 0.0)
    return (left, gain, shift), (rest, gain_right, shift_right), mean, ct.rsqrt(variance + eps)


def normed_tile(tile, mean, inverse):
    """The norm of one of these parts."""
    difference, gain, shift = tile
    return (difference - mean) * inverse * gain + shift


@ct.kernel
def layernorm_two_tiles(x, weight, bias, out, eps, R: ConstInt, BC: ConstInt, BR: ConstInt):
    """layernorm_single_pass for rows of BC + BR columns, in these two parts: GPT-2's 768 are no power of two. BC is a
    multiple of BR. Without columns that are not there, two rows fit one warp, in which no sum waits for another
    warp's."""
    n, right = ct.bid(0), BC // BR
    left, rest, mean, inverse = norm_of_two_tiles(x, weight, bias, eps, n, right, R, BC, BR)
    result = normed_tile(left, mean, inverse)
    ct.store(out, index=(n, 0), tile=result.astype(out.dtype), allow_tma=False)
    result_right = normed_tile(rest, mean, inverse)
    ct.store(out, index=(n, right), tile=result_right.astype(out.dtype), allow_tma=False)


@ct.kernel
def residual_layernorm(partial, bias, norm_weight, norm_bias, x, out, eps, BZ: ConstInt, BC: ConstInt):
    """One block makes one row of at most BC columns, which stays in registers: it adds up the parts of a product, BZ at
    a time, and the residual, and norms the sum."""
    n = ct.bid(0)
    offset, gain, shift = vector(bias, BC), vector(norm_weight, BC), vector(norm_bias, BC)
    ct.grid_dependency_control_wait()
    value = block(x, n, 1, BC) + offset
    for z in range(ct.cdiv(partial.shape[0], BZ)):
        zero = ct.PaddingMode.ZERO
        parts = ct.load(partial, index=(z, n, 0), shape=(BZ, 1, BC), padding_mode=zero, allow_tma=False)
        value += ct.sum(parts.reshape((BZ, BC)), axis=0, keepdims=True)
    rounded = value.astype(x.dtype)
    ct.store(x, index=(n, 0), tile=rounded, allow_tma=False)
    result = normed(rounded.astype(ct.float32), gain, shift, x.shape[1], eps)
    ct.store(out, index=(n, 0), tile=result.astype(out.dtype), allow_tma=False)


@ct.kernel
def residual_layernorm_four(partial, bias, norm_weight, norm_bias, x, out, eps, BC: ConstInt):
    """residual_layernorm of four parts, which are read at once."""
    n = ct.bid(0)
    offset, gain, shift = vector(bias, BC), vector(norm_weight, BC), vector(norm_bias, BC)
    ct.grid_dependency_control_wait()
    value = block(x, n, 1, BC) + offset
    for z in ct.static_iter(range(4)):
        zero = ct.PaddingMode.ZERO
        part = ct.load(partial, index=(z, n, 0), shape=(1, 1, BC), padding_mode=zero, allow_tma=False)
        value += part.reshape((1, BC))
    rounded = value.astype(x.dtype)
    ct.store(x, index=(n, 0), tile=rounded, allow_tma=False)
    result = normed(rounded.astype(ct.float32), gain, shift, x.shape[1], eps)
    ct.store(out, index=(n, 0), tile=result.astype(out.dtype), allow_tma=False)
