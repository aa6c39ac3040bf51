"""The tanh form of GELU alone. See products.py for GELU as an epilogue."""

from __future__ import annotations

import cuda.tile as ct

from ..products.products import Int, gelu_of_value, load, store


@ct.kernel
def gelu(x, out, R: Int, BN: Int):
    """One block makes BN columns of R rows."""
    m, n = ct.bid(1), ct.bid(0)
    value = load(x, (m, n), (R, BN)).astype(ct.float32)
    store(out, (m, n), gelu_of_value(value, out.dtype))
