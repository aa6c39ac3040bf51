"""Loads, stores and atomics through tiles of pointers. A pointer tile is an array of addresses (see memory.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..analysis.nans import standard
from ..numbers.elements import Array, Element
from .memory import AddressSpace, Trap, base_address
from .views import unspecified


class Cells:
    """The elements of memory that a tile of pointers addresses: `flat[index]` for those whose mask is set. `offsets`:
    their bytes in the allocation. Those that follow each other, as most do, are a range and a slice, which take less
    time and, in the access log, less memory."""

    __slots__ = ("_index", "active", "flat", "mask", "number", "offsets", "place", "shape", "space")

    def __init__(
        self, space: AddressSpace, addresses: Any, mask: Any, element: Element, shape: tuple[int, ...]
    ) -> None:
        self.space, self.shape = space, shape
        addresses = np.asarray(addresses, np.int64)
        if addresses.shape != shape:
            addresses = np.broadcast_to(addresses, shape)
        self.mask: Array | None = None
        if not (mask is None or mask is True or (mask is not False and mask.all())):
            self.mask = np.broadcast_to(mask, shape)
        active: Array = addresses.reshape(-1) if self.mask is None else addresses[self.mask]
        self.active = active
        self._index: Array | None = None
        self.place: slice | Array = active
        self.offsets: range | Array = active
        if not active.size:
            self.number, self.flat = 0, np.empty(0, element.storage)
            return
        itemsize = element.storage.itemsize
        shift, misaligned = itemsize.bit_length() - 1, itemsize - 1  # of a power of two: faster than // and %
        low, high = int(active[0]), int(active[-1])
        consecutive = _consecutive(active, low, high, itemsize)
        if not consecutive:
            low, high = int(np.minimum.reduce(active)), int(np.maximum.reduce(active))
        self.number = space.number(low)
        if space.number(high) != self.number:
            raise Trap("one access reaches into more than one allocation")
        base = base_address(self.number)
        space.check(self.number, low - base, high - base + itemsize - 1)
        if consecutive:
            self.offsets = range(low - base, high - base + 1, itemsize)
            self.place = slice((low - base) >> shift, ((high - base) >> shift) + 1)
            bits = low - base
        else:
            self.offsets = active - base
            self.place = self.offsets >> shift
            bits = int(np.bitwise_or.reduce(self.offsets))
        if bits & misaligned:
            raise Trap(f"an address of {element.name} is not a multiple of its {itemsize} bytes")
        self.flat = space[self.number].typed(element.storage)

    @property
    def index(self) -> Array:
        """The number of each active cell in `flat`."""
        if self._index is None:
            place = self.place
            self._index = np.arange(place.start, place.stop) if isinstance(place, slice) else place
        return self._index

    def held(self) -> Array:
        """What memory holds there now, as it is stored; perhaps a view."""
        return self.flat[self.place] if isinstance(self.place, slice) else self.flat.take(self.place)

    def spread(self, values: Any) -> Array:
        """A tile's values at the active cells, in the order of `index`."""
        full = values if np.shape(values) == self.shape else np.broadcast_to(values, self.shape)
        return full.reshape(-1) if self.mask is None else full[self.mask]

    def bits(self) -> bytes:
        """What memory holds there now, to compare."""
        return self.held().tobytes()

    def tile(self, active: Array, masked: Any, element: Element) -> Any:
        """A whole tile from the values of the active cells and those of the others."""
        if self.mask is None:
            result = active.reshape(self.shape)
        else:
            result = np.array(np.broadcast_to(np.asarray(masked, element.compute), self.shape))
            result[self.mask] = active
        return result if result.ndim else scalar(result[()], element)


def scalar(value: Any, element: Element) -> Any:
    """A rank-0 tile's value from a numpy scalar."""
    return value if element.kind == "float" else bool(value) if element.bits == 1 else int(value)


def load(cells: Cells, padding: Any, element: Element) -> Any:
    """The tile of values; masked-off elements are `padding` (None: unspecified)."""
    values = element.decode(cells.held())
    return cells.tile(values, unspecified(element) if padding is None else padding, element)


def store(cells: Cells, value: Any, element: Element) -> None:
    cells.flat[cells.place] = element.encode(cells.spread(np.asarray(value, element.compute)))


def contested(cells: Cells, value: Any, element: Element) -> bool:
    """True if one store writes two different values to one address: which of them remains is unspecified."""
    if _distinct(cells.place):
        return False
    index = cells.index
    values = element.encode(cells.spread(np.asarray(value, element.compute)))
    order = np.argsort(index, kind="stable")
    index, bits = index[order], np.ascontiguousarray(values[order]).view(f"u{element.storage.itemsize}")
    return bool(((index[1:] == index[:-1]) & (bits[1:] != bits[:-1])).any())


Combine = Callable[[Any, Any], Any]


def combiner(mode: str, element: Element) -> Combine:
    """The function by which an atomic of `mode` combines the old value and its argument, on arrays in compute dtype."""
    unsigned = element.unsigned if element.kind == "integer" else None

    def as_unsigned(ufunc: Combine) -> Combine:
        return lambda old, arg: ufunc(old.view(unsigned), arg.view(unsigned)).view(element.compute)

    one_nan = standard(element)

    def add_float(old: Any, arg: Any) -> Any:
        total = old + arg
        return one_nan(element.round(total) if element.round else total)

    table: dict[str, Combine] = {
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "add": np.add, "addf": add_float,
        "max": np.maximum, "min": np.minimum, "umax": as_unsigned(np.maximum), "umin": as_unsigned(np.minimum),
        "xchg": lambda _old, arg: arg,
    }  # fmt: skip
    return table[mode]


def read_modify_write(cells: Cells, argument: Any, combine: Combine, element: Element) -> Any:
    """The old values. Elements that share an address take turns, in the tile's order."""
    arguments = cells.spread(np.asarray(argument, element.compute))
    if _distinct(cells.place):
        old = element.decode(cells.held())
        cells.flat[cells.place] = element.encode(combine(old, arguments))
        return cells.tile(old, np.zeros((), element.compute), element)
    old = np.empty(cells.index.shape, element.compute)
    for chosen in _turns(cells.index):
        old[chosen] = element.decode(cells.flat[cells.index[chosen]])
        cells.flat[cells.index[chosen]] = element.encode(combine(old[chosen], arguments[chosen]))
    return cells.tile(old, np.zeros((), element.compute), element)


def compare_and_swap(cells: Cells, expected: Any, value: Any, element: Element) -> Any:
    """Returns the old values; a masked-off element returns its compare operand. Floats are compared by their bits."""
    bits = np.dtype(f"u{element.storage.itemsize}")
    wanted = element.encode(cells.spread(np.asarray(expected, element.compute))).view(bits)
    values = element.encode(cells.spread(np.asarray(value, element.compute)))
    if _distinct(cells.place):
        before = cells.held().copy()
        cells.flat[cells.place] = np.where(before.view(bits) == wanted, values, before)
        return cells.tile(element.decode(before), expected, element)
    old = np.empty(cells.index.shape, element.storage)
    for chosen in _turns(cells.index):
        index = cells.index[chosen]
        old[chosen] = cells.flat[index]
        swap = old[chosen].view(bits) == wanted[chosen]
        cells.flat[index[swap]] = values[chosen][swap]
    return cells.tile(element.decode(old), expected, element)


def _consecutive(addresses: Array, first: int, last: int, itemsize: int) -> bool:
    """True if each address follows the one before it; `first` and `last` of them."""
    if last - first != (addresses.size - 1) * itemsize:
        return False
    return addresses.size < 3 or np.count_nonzero(addresses[1:] - addresses[:-1] != itemsize) == 0


def _distinct(place: slice | Array) -> bool:
    """True if no cell occurs twice. Those of most tiles increase, which is faster to see."""
    if isinstance(place, slice):
        return True
    return place.size < 2 or bool((place[1:] > place[:-1]).all()) or len(np.unique(place)) == place.size


def _turns(index: Array) -> list[Array]:
    """Positions of `index`, split into groups in which no cell occurs twice; repeated cells are in later groups."""
    if _distinct(index):
        return [np.arange(index.size)]
    seen: dict[int, int] = {}
    groups: list[list[int]] = []
    for position, cell in enumerate(index.tolist()):
        turn = seen.get(cell, 0)
        seen[cell] = turn + 1
        if turn == len(groups):
            groups.append([])
        groups[turn].append(position)
    return [np.array(group) for group in groups]
