"""Memory that holds unspecified elements: which bytes were stored from outside of a tensor, during one launch.

A kernel may store padding into rows that nobody reads. So a store marks the bytes that it leaves unspecified, the next
store to them clears the marks, and a load gives what it reads there the poison that the stored element had. An
allocation has a shadow, an array of a byte for each of its own, once padding is stored in it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..analysis import taint
from ..numbers.elements import Array
from . import views
from .scattered import Cells
from .views import TileView


def mark_view(view: TileView, mask: Any, *index: int) -> None:
    """After a store through a view: marks its elements that are poisoned, and clears the others."""
    if mask is None and view.number not in view.space.unspecified:
        return
    shadow = _window(view.space.shadow(view.number), view, index)
    if shadow is not None:
        part = None if mask is None else views.cut(mask, view.tile, view.clip(index)[1])
        shadow[...] = _bits(False if part is None else view.per_place(part, index), shadow)


def view_mask(view: TileView, *index: int) -> Array | None:
    """The poison of a tile that a view has loaded: of elements outside the tensor, and of those that memory holds."""
    outside = views.poison(view, *index)
    shadow = view.space.unspecified.get(view.number)
    part = None if shadow is None else _window(shadow, view, index)
    if part is None or not part.any():
        return outside
    mask = np.zeros(view.tile, np.bool_)
    mask[view.clip(index)[1]] = view.per_element(part != 0, index)
    return taint.either(outside, mask)


def mark_cells(cells: Cells, mask: Any) -> None:
    """After a store through pointers: marks the elements that are poisoned, and clears the others."""
    if not cells.active.size or (mask is None and cells.number not in cells.space.unspecified):
        return
    shadow = _typed(cells.space.shadow(cells.number), cells.flat.dtype)
    shadow[cells.place] = _bits(False if mask is None else cells.spread(mask), shadow)


def cells_mask(cells: Cells, masked: Any) -> Any:
    """The poison of a tile that was loaded through pointers. `masked`: that of its elements whose mask is off."""
    shadow = cells.space.unspecified.get(cells.number)
    if shadow is None or not cells.active.size:
        return masked
    full = np.zeros(cells.shape, np.bool_)
    active = np.ones(cells.shape, np.bool_) if cells.mask is None else cells.mask
    full[active] = _typed(shadow, cells.flat.dtype)[cells.place] != 0
    return taint.either(masked, full) if full.any() else masked


def _window(shadow: Array, view: TileView, index: tuple[int, ...]) -> Array | None:
    """The part of a shadow that belongs to the elements of a tile inside its tensor; None if all lie outside."""
    window = view.window(index)
    if not math.prod(window.shape):
        return None
    return np.ndarray(window.shape, f"u{view.element.storage.itemsize}", shadow, window.offset, window.strides)


def _typed(shadow: Array, storage: np.dtype[Any]) -> Array:
    size = storage.itemsize
    return shadow[: shadow.size // size * size].view(f"u{size}")


def _bits(mask: Any, shadow: Array) -> Any:
    return np.where(mask, np.iinfo(shadow.dtype).max, shadow.dtype.type(0))
