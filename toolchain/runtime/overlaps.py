"""Whether arrays share memory, by their addresses alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


def meet(one: range, other: range) -> bool:
    """Whether two ranges of addresses have one in common."""
    return one.start < other.stop and other.start < one.stop


def any_meet(ours: Iterable[range], theirs: Iterable[range]) -> bool:
    """Whether two sets of address ranges have an address in common."""
    return any(meet(a, b) for a in ours for b in theirs)


@dataclass(frozen=True)
class Placed:
    """Where the elements of an array lie. `byte_strides`: of each dimension."""

    address: int
    itemsize: int
    shape: tuple[int, ...]
    byte_strides: tuple[int, ...]

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """For numpy, which compares the addresses and reads no memory."""
        return {
            "version": 3, "data": (self.address, True), "typestr": f"|V{self.itemsize}", "shape": self.shape,
            "strides": self.byte_strides,
        }  # fmt: skip


def share_elements(one: Placed, other: Placed) -> bool:
    """Whether two arrays whose ranges of addresses meet share an element; arrays that lie in between each other need
    not."""
    return np.shares_memory(np.asarray(one), np.asarray(other))


def overlaps_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements of an array are at one place, as where a stride is 0. `strides`: in elements."""
    steps = sorted((abs(stride), size) for size, stride in zip(shape, strides, strict=True) if size > 1)
    if 0 in shape:
        return False
    reach = 0  # of the dimensions with smaller strides
    for stride, size in steps:
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False
    if steps[0][0] == 0:
        return True
    places = np.zeros(1, np.int64)
    for stride, size in steps:  # dimensions that interlock, which arrays rarely have
        places = (places[:, None] + stride * np.arange(size)).reshape(-1)
    return len(np.unique(places)) < len(places)
