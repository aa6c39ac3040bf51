"""Views at run time: a tensor in memory, and tiles of it loaded and stored as numpy slices.

A tile view (partition, strided or gather/scatter) is a list of dimensions in the tile's order, each with the elements
per index step, the tile's extent and the tensor's extent. Elements outside the tensor read as the padding value.
Without one they are unspecified: loads mark them in the poison mask and fill them with NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..numbers.elements import Array, Element
from .memory import AddressSpace, Trap, base_address, extent


class TensorView:
    """A tensor in memory: `shape` and `strides` in elements, starting at byte `offset` of an allocation."""

    __slots__ = ("element", "number", "offset", "shape", "space", "strides")

    def __init__(
        self, space: AddressSpace, address: int, shape: Sequence[int], strides: Sequence[int], element: Element
    ) -> None:
        self.space = space
        self.number = space.number(address)
        self.offset = address - base_address(self.number)
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.element = element
        if self.offset % element.storage.itemsize:
            raise Trap(f"a tensor of {element.name} starts at byte {self.offset}, not a multiple of its element size")
        if any(n < 0 for n in self.shape):
            raise Trap(f"a tensor view of negative extent: shape {self.shape}")

    @property
    def address(self) -> int:
        return base_address(self.number) + self.offset


class Dimension(NamedTuple):
    """One dimension of a tile view: an index step in elements, the tile's and the tensor's extent."""

    step: int
    tile: int
    extent: int


class Window(NamedTuple):
    """The part of a tile that lies inside its tensor: bytes of one allocation."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class TileView:
    """Tiles of a tensor. `fill`: the value of elements outside of it (None: unspecified)."""

    __slots__ = ("array", "dims", "element", "fill", "number", "offset", "space", "strides", "tile")

    def __init__(
        self,
        tensor: TensorView,
        tile: tuple[int, ...],
        steps: tuple[int, ...],
        dim_map: tuple[int, ...],
        fill: Any,
    ) -> None:
        self.space, self.number, self.offset, self.element = tensor.space, tensor.number, tensor.offset, tensor.element
        self.tile, self.fill = tile, fill
        shape = tuple(tensor.shape[d] for d in dim_map)
        storage = tensor.element.storage
        self.strides = tuple(tensor.strides[d] * storage.itemsize for d in dim_map)
        self.dims = tuple(Dimension(s, t, n) for s, t, n in zip(steps, tile, shape, strict=True))
        # Usually the whole tensor lies in its allocation and is one array. Otherwise only accesses to the part outside
        # are wrong, so each access is checked by itself.
        self.array: Array | None = None
        memory = tensor.space[self.number]
        if 0 in shape:
            self.array = np.empty(shape, storage)
        else:
            first, last = extent(shape, self.strides, storage.itemsize)
            if self.offset + first >= 0 and self.offset + last < memory.nbytes:
                self.array = np.ndarray(shape, storage, memory.bytes, self.offset, self.strides)

    def inside(self, index: Sequence[int]) -> tuple[slice, ...] | None:
        """The tile's slices of `array` if all of it lies inside the tensor."""
        slices: list[slice] = []
        for i, (step, tile, size) in zip(index, self.dims, strict=True):
            start = i * step
            stop = start + tile
            if start < 0 or stop > size:
                return None
            slices.append(slice(start, stop))
        return None if self.array is None else tuple(slices)

    def clip(self, index: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The slices of the tensor and of the tile that cover their common elements; empty if there are none."""
        tensor: list[slice] = []
        local: list[slice] = []
        for i, (step, tile, size) in zip(index, self.dims, strict=True):
            start = i * step
            low = max(start, 0)
            high = max(min(start + tile, size), low)
            tensor.append(slice(low, high))
            local.append(slice(low - start, high - start) if high > low else slice(0, 0))
        return tuple(tensor), tuple(local)

    def window(self, index: Sequence[int]) -> Window:
        """The bytes that an access at `index` touches."""
        slices = self.clip(index)[0]
        offset = self.offset + sum(s.start * stride for s, stride in zip(slices, self.strides, strict=True))
        return Window(offset, tuple(s.stop - s.start for s in slices), self.strides)

    def clipped(self, index: Sequence[int]) -> tuple[Array | None, tuple[slice, ...]]:
        """The storage of the elements inside the tensor (None if there are none) and their slices of the tile. Traps if
        they lie outside the allocation."""
        slices, local = self.clip(index)
        if any(s.start == s.stop for s in slices):
            return None, local
        if self.array is not None:
            return self.array[slices], local
        window = self.window(index)
        itemsize = self.element.storage.itemsize
        first, last = extent(window.shape, window.strides, itemsize)
        self.space.check(self.number, window.offset + first, window.offset + last)
        memory = self.space[self.number].bytes
        return np.ndarray(window.shape, self.element.storage, memory, window.offset, window.strides), local

    def written(self, index: Sequence[int], part: Array) -> None:
        """Takes `part`, as `clipped` gave it, back into memory, if it is not memory itself."""

    def per_place(self, mask: Array, index: Sequence[int]) -> Array:
        """A mask of what `clipped` gives as one of the places of `window`, and the reverse."""
        del index
        return mask

    def per_element(self, mask: Array, index: Sequence[int]) -> Array:
        del index
        return mask


def check_inbounds(view: TileView, promised: Sequence[int], *index: Any) -> None:
    """Traps if a tile reaches outside the tensor along one of the `promised` dimensions. An index that is an array
    selects elements one by one."""
    for d in promised:
        step, tile, size = view.dims[d]
        first = int(np.min(index[d])) * step
        last = int(np.max(index[d])) * step + (tile if np.ndim(index[d]) == 0 else 1) - 1
        if first < 0 or last >= size:
            raise Trap(
                f"dimension {d} of the tile holds elements {first} .. {last} of a tensor that has {size} there, but "
                f"inbounds promises that none is outside"
            )


def load(view: TileView, *index: int) -> Array:
    """The tile at `index`, in compute dtype. Unspecified elements are NaN (integers: all ones)."""
    return _load(view, unspecified(view.element) if view.fill is None else view.fill, index)


def load_zeros(view: TileView, *index: int) -> Array:
    """The same with 0 for unspecified elements."""
    return _load(view, 0, index)


def _load(view: TileView, fill: Any, index: tuple[int, ...]) -> Array:
    slices = view.inside(index)
    element = view.element
    if slices is not None:
        return element.decode(view.array[slices])  # pyright: ignore[reportOptionalSubscript]
    part, local = view.clipped(index)
    tile = np.full(view.tile, fill, element.compute)
    if part is not None:
        tile[local] = element.decode(part)
    return tile


def panel(view: TileView, along: int, steps: tuple[int, int], fixed: int, *, zero: bool, cut: bool) -> Array:
    """Tiles of two dimensions side by side: those from the first of `steps` to before the second in dimension `along`,
    at `fixed` in the other. Elements outside are as in `load`, or with `zero` in `load_zeros`; with `cut` they are left
    out. Of a view whose tensor does not lie in its allocation it is one tile."""
    fill = 0 if zero else unspecified(view.element) if view.fill is None else view.fill
    if view.array is None:
        return _load(view, fill, (fixed, steps[0]) if along else (steps[0], fixed))
    both = ((fixed, fixed + 1), steps) if along else (steps, (fixed, fixed + 1))
    edges: list[tuple[int, int]] = []
    inside: list[slice] = []
    for (begin, end), (_, tile, size) in zip(both, view.dims, strict=True):
        low, high = begin * tile, end * tile
        edges.append((low, high))
        start = low if low > 0 else 0
        inside.append(slice(start, max(start, high if high < size else size)))
    part = view.element.decode(view.array[tuple(inside)])
    shape = tuple(high - low for low, high in edges)
    if cut or part.shape == shape:
        return part
    made = np.full(shape, fill, view.element.compute)
    made[tuple(slice(s.start - low, s.stop - low) for s, (low, _) in zip(inside, edges, strict=True))] = part
    return made


def poison(view: TileView, *index: int) -> Array | None:
    """The mask of the unspecified elements of the tile at `index`; None if there are none."""
    if view.fill is not None or view.inside(index) is not None:
        return None
    part, local = view.clipped(index)
    mask = np.ones(view.tile, np.bool_)
    if part is not None:
        mask[local] = False
    return mask if mask.any() else None


def store(view: TileView, tile: Array, *index: int) -> None:
    """Writes a tile; elements outside the tensor are dropped."""
    element = view.element
    slices = view.inside(index)
    if slices is not None:
        view.array[slices] = element.encode(tile)  # pyright: ignore[reportOptionalSubscript]
        return
    part, local = view.clipped(index)
    if part is not None:
        part[...] = element.encode(cut(tile, view.tile, local))
        view.written(index, part)


def update(view: TileView, tile: Array, combine: Callable[[Array, Array], Array], *index: int) -> None:
    """view[index] = combine(view[index], tile), for what lies inside the tensor."""
    part, local = view.clipped(index)
    if part is not None:
        part[...] = view.element.encode(combine(view.element.decode(part), cut(tile, view.tile, local)))
        view.written(index, part)


def highest_inside(view: TileView, mask: Array, *index: int) -> int:
    """The highest level (see analysis/taint.py) of this poison mask among a tile's elements that lie in its tensor."""
    part, local = view.clipped(index)
    return 0 if part is None else int(cut(mask, view.tile, local).max())


def cut(tile: Array, shape: tuple[int, ...], local: tuple[slice, ...]) -> Array:
    """`tile[local]`, for a tile of this `shape` whose array may have extent 1 instead in some dimensions."""
    return tile[tuple(s if n == full else slice(None) for s, n, full in zip(local, tile.shape, shape, strict=True))]


def unspecified(element: Element) -> Any:
    """The value that an unspecified element reads as, chosen so that it is noticed."""
    if element.kind == "float":
        return np.nan
    return element.compute.type(-1)
