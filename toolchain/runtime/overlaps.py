"""Whether arrays share memory, by their addresses alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


def meet(one: range, other: range) -> bool:
    """Whether two ranges of addresses have one in common."""
    return one.start < other.stop and other.start < one.stop


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
