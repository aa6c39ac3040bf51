"""The layout algebra: functions from coordinates to offsets, and what can be made of them.

Pure Python without dependencies. The results agree with NVIDIA's published CuTe IR, and with its rules for modes of
size 1, rather than with pycute, which differs from it.
"""

from .complement import complement
from .compose import composition
from .composed import recast_composed, slice_composed
from .coordinates import crd2idx, dice, idx2crd, picked, slice_and_offset, slice_layout, zero_if_open
from .divide import divide_up_by_tile, flat_divide, logical_divide, tiled_divide, zipped_divide
from .inverse import left_inverse, right_inverse
from .layout import (
    Layout,
    coalesce,
    cosize,
    filter_layout,
    filter_zeros,
    flat,
    group_modes,
    make_layout,
    select,
    size,
)
from .leaves import Basis, Dynamic, LayoutError
from .numbers import divide_up, equal, less_each, shape_div, tuple_add, tuple_sub
from .partition import local_partition, local_tile
from .product import (
    append_to_rank,
    blocked_product,
    flat_product,
    logical_product,
    make_identity_layout,
    make_layout_like,
    make_ordered_layout,
    prepend_to_rank,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from .recast import downcast, recast_layout, upcast
from .swizzle import ComposedLayout, Swizzle, bank_conflicts, compose

__all__ = [
    "Basis",
    "ComposedLayout",
    "Dynamic",
    "Layout",
    "LayoutError",
    "Swizzle",
    "append_to_rank",
    "bank_conflicts",
    "blocked_product",
    "coalesce",
    "complement",
    "compose",
    "composition",
    "cosize",
    "crd2idx",
    "dice",
    "divide_up",
    "divide_up_by_tile",
    "downcast",
    "equal",
    "filter_layout",
    "filter_zeros",
    "flat",
    "flat_divide",
    "flat_product",
    "group_modes",
    "idx2crd",
    "left_inverse",
    "less_each",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_ordered_layout",
    "picked",
    "prepend_to_rank",
    "raked_product",
    "recast_composed",
    "recast_layout",
    "right_inverse",
    "select",
    "shape_div",
    "size",
    "slice_and_offset",
    "slice_composed",
    "slice_layout",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "tuple_add",
    "tuple_sub",
    "upcast",
    "zero_if_open",
    "zipped_divide",
    "zipped_product",
]  # fmt: skip
