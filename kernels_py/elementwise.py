"""The tanh form of GELU, alone and as an epilogue."""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]


def gelu_tile(x, storage):
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) of an f32 tile. Where the result is stored in 16 bits, the GPU's
    approximate tanh (to 2^-11) does."""
    inner = 0.7978845608028654 * (x + 0.044715 * (x * x * x))
    if storage == ct.float32:
        return 0.5 * x * (1.0 + ct.tanh(inner))
    return 0.5 * x * (1.0 + ct.tanh(inner, rounding_mode=ct.RoundingMode.APPROX))


@ct.kernel
def gelu(x, out, R: ConstInt, BN: ConstInt):
    """One block makes BN columns of R rows."""
    m, n = ct.bid(1), ct.bid(0)
    value = ct.load(x, index=(m, n), shape=(R, BN), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(out, index=(m, n), tile=gelu_tile(value, out.dtype).astype(out.dtype))
