"""out[n] = wte[tokens[n]] + wpe[positions[n]]"""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]


@ct.kernel
def embedding(tokens, positions, wte, wpe, out, BC: ConstInt):
    """One block makes BC columns of one token's row. The caller has checked that the indices are in range."""
    n, j = ct.bid(0), ct.bid(1)
    token = ct.load(tokens, index=(n,), shape=(1,)).item()
    position = ct.load(positions, index=(n,), shape=(1,)).item()
    word = ct.load(wte, index=(token, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO)
    place = ct.load(wpe, index=(position, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO)
    total = word.astype(ct.float32) + place.astype(ct.float32)
    ct.store(out, index=(n, j), tile=total.astype(out.dtype))
