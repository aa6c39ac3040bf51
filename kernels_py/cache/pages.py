"""Where a position of a sequence is in a cache: in a row of the sequence's own, or in pages that all sequences take
from one pool."""

from __future__ import annotations

import cuda.tile as ct


def own_row(b, place):
    return b, place


def page_of(tables, b, place, count):
    """The page of sequence b that has this place, and where in it that is: places are positions, or tiles of them, and
    a page has `count` of them."""
    page = ct.load(tables, index=(b, place // count), shape=(1, 1), allow_tma=False).item()
    return page, place % count
