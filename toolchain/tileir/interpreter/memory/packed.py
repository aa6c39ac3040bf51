"""Views of a tensor whose elements have four bits: two share a byte, the first of them its low bits.

They do so along the one dimension that is contiguous. A row of an odd number of elements fills its last byte with four
bits that belong to no element: no access reads or changes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..numbers.elements import Array
from .memory import Trap, extent
from .views import TensorView, TileView, Window


class PackedView(TileView):
    """A tile view of such a tensor. `along`: the dimension of the tile along which elements share bytes. `part`s are
    copies of the elements in memory, one in a byte."""

    __slots__ = ("along",)

    def __init__(
        self, tensor: TensorView, tile: tuple[int, ...], steps: tuple[int, ...], dim_map: tuple[int, ...], fill: Any,
        along: int,
    ) -> None:  # fmt: skip
        super().__init__(tensor, tile, steps, dim_map, fill)
        self.along = along
        self.array = None
        for d, (dim, stride) in enumerate(zip(self.dims, self.strides, strict=True)):
            if d != along and dim.extent > 1 and stride % 2:
                raise Trap(f"rows of {self.element.name} are {stride} elements apart: not in whole bytes")
        self.strides = tuple(1 if d == along else stride // 2 for d, stride in enumerate(self.strides))  # in bytes

    def inside(self, index: Sequence[int]) -> None:
        """None: what lies in memory is never a tile as it is."""

    def window(self, index: Sequence[int]) -> Window:
        """The bytes that an access at `index` touches."""
        starts, shape = list[int](), list[int]()
        for d, part in enumerate(self.clip(index)[0]):
            start, stop = (part.start // 2, -(-part.stop // 2)) if d == self.along else (part.start, part.stop)
            starts.append(start)
            shape.append(stop - start if part.stop > part.start else 0)
        offset = self.offset + sum(start * stride for start, stride in zip(starts, self.strides, strict=True))
        return Window(offset, tuple(shape), self.strides)

    def clipped(self, index: Sequence[int]) -> tuple[Array | None, tuple[slice, ...]]:
        slices, local = self.clip(index)
        if any(s.start == s.stop for s in slices):
            return None, local
        return apart(self._bytes(index), self.along)[self._chosen(slices)].view(self.element.storage), local

    def written(self, index: Sequence[int], part: Array) -> None:
        held = self._bytes(index)
        codes = apart(held, self.along)
        codes[self._chosen(self.clip(index)[0])] = part.view(np.uint8)
        held[...] = together(codes, self.along)

    def per_place(self, mask: Array, index: Sequence[int]) -> Array:
        window = self.window(index)
        codes = np.zeros([2 * n if d == self.along else n for d, n in enumerate(window.shape)], np.uint8)
        codes[self._chosen(self.clip(index)[0])] = mask
        return together(codes, self.along) != 0

    def per_element(self, mask: Array, index: Sequence[int]) -> Array:
        return np.repeat(mask, 2, self.along)[self._chosen(self.clip(index)[0])]

    def _bytes(self, index: Sequence[int]) -> Array:
        """The bytes in memory that hold a tile's elements. Traps if they lie outside the allocation."""
        window = self.window(index)
        first, last = extent(window.shape, window.strides, 1)
        self.space.check(self.number, window.offset + first, window.offset + last)
        return np.ndarray(window.shape, np.uint8, self.space[self.number].bytes, window.offset, window.strides)

    def _chosen(self, slices: tuple[slice, ...]) -> tuple[slice, ...]:
        """Among all elements of the bytes of a tile, those of the tile."""
        part = slices[self.along]
        start = part.start % 2
        chosen = slice(start, start + part.stop - part.start)
        return tuple(chosen if d == self.along else slice(None) for d in range(len(slices)))


def apart(stored: Array, along: int) -> Array:
    """The halves of bytes, each in one of its own."""
    halves = np.stack((stored & 15, stored >> 4), axis=along + 1)
    return halves.reshape([2 * n if d == along else n for d, n in enumerate(stored.shape)])


def together(codes: Array, along: int) -> Array:
    """The reverse."""
    pairs = codes.reshape([*codes.shape[:along], -1, 2, *codes.shape[along + 1 :]])
    return pairs.take(0, along + 1) | pairs.take(1, along + 1) << 4
