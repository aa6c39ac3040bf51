"""The key-value cache: appending the keys and values of a prompt, to rows or to pages."""

from __future__ import annotations

import cuda.tile as ct

from .pages import own_row, page_of

ConstInt = ct.Constant[int]


def append_heads(k, v, positions, k_cache, v_cache, D, slot):
    """One block copies one head's vectors of one position, to where `slot` says that it is."""
    t, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    place = ct.load(positions, index=(b,), shape=(1,)).item() + t
    own, at = slot(b, place)
    key = ct.load(k, index=(b, t, h, 0), shape=(1, 1, 1, D))
    value = ct.load(v, index=(b, t, h, 0), shape=(1, 1, 1, D))
    ct.store(k_cache, index=(own, at, h, 0), tile=key)
    ct.store(v_cache, index=(own, at, h, 0), tile=value)


@ct.kernel
def kv_append(k, v, positions, k_cache, v_cache, D: ConstInt):
    """k_cache[b, positions[b] + t] = k[b, t], likewise v."""
    append_heads(k, v, positions, k_cache, v_cache, D, own_row)


@ct.kernel
def paged_append(k, v, positions, tables, k_cache, v_cache, D: ConstInt):
    """The same to a cache in pages."""

    def slot(b, place):
        return page_of(tables, b, place, k_cache.shape[1])

    append_heads(k, v, positions, k_cache, v_cache, D, slot)
