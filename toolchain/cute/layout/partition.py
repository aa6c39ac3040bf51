"""Parts of a layout: the tile of a block, and the elements of a thread."""

from __future__ import annotations

from typing import Any

from . import tuples
from .compose import Tile
from .coordinates import crd2idx, idx2crd, slice_and_offset
from .divide import zipped_divide
from .layout import Layout, size
from .leaves import LayoutError
from .tuples import IntTuple


def local_tile(layout: Layout, tiler: Tile, coordinate: IntTuple) -> tuple[Layout, Any]:
    """The tile at a coordinate of the tiles, and the offset of its first element. None in the coordinate keeps the
    tiles of that mode as a mode at the end. Raises LayoutError."""
    tiles = zipped_divide(layout, tiler)
    within = tuple(None for _ in range(len(tiles[0])))
    return slice_and_offset(tiles, (within, coordinate))


def local_partition(layout: Layout, threads: Layout, thread: int) -> tuple[Layout, Any]:
    """The elements that a thread of a layout of threads takes of each mode in turn, and the offset of the first.

    Each mode of the layout is divided by that mode's number of threads. Raises LayoutError if there is no such thread.
    """
    if not 0 <= thread < size(threads):
        raise LayoutError(f"{threads} has no thread {thread}")
    counts = tuple(tuples.product(mode.shape) for mode in threads)
    tiles = zipped_divide(layout, counts)
    place = idx2crd(position(threads, thread), counts)
    return slice_and_offset(tiles, (place, tuple(None for _ in range(len(tiles[1])))))


def position(threads: Layout, thread: int) -> int:
    """The index at which a layout of threads holds a thread's number. Raises LayoutError if none does."""
    for index in range(size(threads)):
        if crd2idx(index, threads) == thread:
            return index
    raise LayoutError(f"{threads} holds no thread {thread}")
