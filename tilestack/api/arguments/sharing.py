"""Which arguments of a launch share memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.runtime.overlaps import Placed, meet, share_elements

from .arrays import Array
from .given import Given, arrays


def shared(a: Array, b: Array) -> bool:
    """Whether two arrays share an element."""
    if a.device != b.device or 0 in a.shape or 0 in b.shape:
        return False
    if a.host is not None and b.host is not None:
        return np.shares_memory(a.host, b.host)
    return meet(a.span, b.span) and _share(a, b)


def groups(given: Sequence[Given]) -> list[int]:
    """Of each argument the first one whose memory it shares, directly or by others in between."""
    found = list(range(len(given)))
    for at, one in enumerate(given):
        for before in range(at):
            pairs = itertools.product(arrays([one]), arrays([given[before]]))
            if found[before] != found[at] and any(a.place == b.place or shared(a, b) for a, b in pairs):
                low, high = sorted((found[before], found[at]))
                found = [low if group == high else group for group in found]
    return found


def where_they_lie(given: Sequence[Given]) -> list[Given]:
    """The arguments, with arrays of the host whose memory meets, without being the same, to be seen in place. One that
    runs backwards is not: no kernel takes its strides."""
    hosts = [a for a in arrays(given) if a.host is not None and 0 not in a.shape and min(a.strides, default=0) >= 0]
    meeting = {
        a.place
        for a, b in itertools.permutations(hosts, 2)
        if a.place != b.place and a.host is not None and b.host is not None and np.may_share_memory(a.host, b.host)
    }

    def seen(array: Array) -> Array:
        return replace(array, in_place=True) if array.device is None and array.place in meeting else array

    return [one if one is None else seen(one) if isinstance(one, Array) else tuple(map(seen, one)) for one in given]


def _share(a: Array, b: Array) -> bool:
    return share_elements(*(Placed(x.address, x.itemsize, x.shape, x.byte_strides) for x in (a, b)))
