"""The tanh form of GELU, alone and as an epilogue."""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]


# sqrt(2/pi) (x + 0.044715 x^3) of x = 2h is h (LINEAR + CUBIC h^2)
LINEAR = 2 * 0.7978845608028654
CUBIC = 8 * 0.7978845608028654 * 0.044715


def gelu_of_half(half, storage):
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) of an f32 tile, given x/2: whoever scales x already does that in
    the same operation. Where the result is stored in 16 bits, the GPU's approximate tanh (to 2^-11) does."""
    inner = half * (half * half * CUBIC + LINEAR)
    if storage == ct.float32:
        return half * ct.tanh(inner) + half
    return half * ct.tanh(inner, rounding_mode=ct.RoundingMode.APPROX) + half


def gelu_tile(x, storage):
    """The GELU of an f32 tile."""
    if storage == ct.float32:  # 2 % faster alone: the full tanh need not wait for the half
        half = 0.5 * x
        return half * ct.tanh(x * (x * x * (CUBIC / 8) + LINEAR / 2)) + half
    return gelu_of_half(0.5 * x, storage)


@ct.kernel
def gelu(x, out, R: ConstInt, BN: ConstInt):
    """One block makes BN columns of R rows."""
    m, n = ct.bid(1), ct.bid(0)
    value = ct.load(x, index=(m, n), shape=(R, BN), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(out, index=(m, n), tile=gelu_tile(value, out.dtype).astype(out.dtype))
