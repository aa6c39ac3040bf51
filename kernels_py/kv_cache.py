"""The key-value cache: appending the keys and values of a prompt."""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]


@ct.kernel
def kv_append(k, v, positions, k_cache, v_cache, D: ConstInt):
    """One block copies one head's vectors of one position: k_cache[b, positions[b] + t] = k[b, t], likewise v."""
    t, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    place = ct.load(positions, index=(b,), shape=(1,)).item() + t
    key = ct.load(k, index=(b, t, h, 0), shape=(1, 1, 1, D))
    value = ct.load(v, index=(b, t, h, 0), shape=(1, 1, 1, D))
    ct.store(k_cache, index=(b, place, h, 0), tile=key)
    ct.store(v_cache, index=(b, place, h, 0), tile=value)
