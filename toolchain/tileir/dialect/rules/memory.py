"""Pointers, views, loads, stores and atomics."""

from __future__ import annotations

import math
from typing import Any

from xdsl.ir import Attribute, SSAValue

from .. import types as t
from ..types import TileType, TileViewType, spell
from .base import (
    booleans,
    check_tile,
    element,
    integers,
    need,
    of,
    pointee,
    rule,
    same,
    same_shape,
    scalar_integer,
    shape,
    word,
)


@rule("get_tile_block_id", "get_num_tile_blocks")
def _block(op: Any) -> None:
    for result in op.results:
        need(result.type == TileType((), t.i32), f"gives tile<i32>, not {spell(result.type)}")


@rule("alloca")
def _alloca(op: Any) -> None:
    need(shape(op.results[0]) == (), f"gives one pointer, not {spell(op.results[0].type)}")
    need(op.num_elem.data > 0, f"num_elem must be at least 1, not {op.num_elem.data}")
    alignment = op.alignment.data
    need(alignment > 0 and alignment & (alignment - 1) == 0, f"alignment {alignment} is not a power of two")
    element = pointee(op.result)
    natural = 1 << (t.byte_width(element) - 1).bit_length()  # tf32 has three bytes and stands at multiples of four
    need(alignment >= natural, f"alignment {alignment} is less than the {natural} that {spell(element)} needs")
    need(alignment < 1 << 63, f"alignment {alignment}: the largest is 2^62")


@rule("join_tokens")
def _join(op: Any) -> None:
    need(len(op.tokens) > 1, f"needs two or more tokens, not {len(op.tokens)}")


@rule("offset")
def _offset(op: Any) -> None:
    pointee(op.ptr)
    integers(op.offset)
    same_shape(op.ptr, op.offset)
    need(op.results[0].type == op.ptr.type, f"gives {spell(op.ptr.type)}, not {spell(op.results[0].type)}")


# Views


@rule("make_tensor_view")
def _tensor_view(op: Any) -> None:
    kind = op.results[0].type
    need(shape(op.base) == (), f"the base must be one pointer, not {spell(op.base.type)}")
    need(
        pointee(op.base) == kind.element_type,
        f"a pointer to {spell(pointee(op.base))} cannot be the base of {spell(kind)}",
    )
    given, wanted = _ptr_attr(element(op.base)), kind.ptr_attr
    need(given == wanted, f"a pointer with ptr_attr {given or 'unset'} cannot be the base of {spell(kind)}")
    for sizes, given, what in ((kind.shape, op.dynamicShape, "size"), (kind.strides, op.dynamicStrides, "stride")):
        wanted = sum(n == t.DYNAMIC for n in sizes)
        need(len(given) == wanted, f"{spell(kind)} has {wanted} dynamic {what}s, but {len(given)} values are given")
        for value in given:
            scalar_integer(value, f"a {what}")
        need(all(0 < n < 1 << 63 or n == t.DYNAMIC for n in sizes), f"a static {what} of {spell(kind)} is out of range")
    same("the types of sizes and strides", *op.dynamicShape, *op.dynamicStrides)


@rule("make_partition_view", "make_strided_view", "make_gather_scatter_view")
def _view(op: Any) -> None:
    kind = op.results[0].type
    wanted = {"partition": t.PartitionViewType, "strided": t.StridedViewType}.get(
        op.name.removeprefix("cuda_tile.make_").removesuffix("_view"), t.GatherScatterViewType
    )
    need(isinstance(kind, wanted), f"gives a {wanted.name.removeprefix('cuda_tile.')}, not {spell(kind)}")
    view = op.tensor_view.type
    need(kind.tensor_view == view, f"a view of {spell(kind.tensor_view)} cannot be made from {spell(view)}")
    rank = len(view.shape)
    need(rank > 0, f"a tensor of rank 0 is not cut into tiles: {spell(view)}")
    need(len(kind.tile_shape) == rank, f"a tile of rank {len(kind.tile_shape)} does not fit a tensor of rank {rank}")
    check_tile(kind.tile)
    if isinstance(kind, t.GatherScatterViewType):
        need(0 <= kind.sparse_dim < rank, f"sparse_dim={kind.sparse_dim} is not a dimension of {spell(view)}")
    else:
        need(sorted(kind.data.dim_map) == list(range(rank)), f"dim_map={list(kind.data.dim_map)} is not a permutation")
    if isinstance(kind, t.StridedViewType):
        steps = kind.traversal_strides
        need(
            len(steps) == rank and all(0 < n < 1 << 31 for n in steps),
            f"traversal_strides={list(steps)} do not fit the tile",
        )
    if kind.padding_value is not None:
        number = view.element_type in t.FLOATS or kind.padding_value == "zero"
        need(number, f"padding_value = {kind.padding_value} is for floats, not {spell(view.element_type)}")


@rule("get_tensor_shape", "get_index_space_shape")
def _sizes(op: Any) -> None:
    kind = op.src.type
    rank = kind.index_rank if isinstance(kind, TileViewType) else len(kind.shape)
    need(rank > 0, f"{spell(kind)} has no sizes")
    need(len(op.results) == rank, f"there are {rank} dimensions, but {len(op.results)} results")
    for result in op.results:
        scalar_integer(result, "a size")


# Loads, stores, atomics


def _ptr_attr(kind: Attribute) -> str | None:
    return kind.ptr_attr if isinstance(kind, t.PtrType) else None


def _one_place(kind: Attribute, given: str | None) -> None:
    """A multicast address stands for several places, which only the multimem operations access."""
    need(given != "multicast", f"{spell(kind)} is multicast, which only the multimem operations access")


def _ordering(op: Any, allowed: tuple[str, ...]) -> None:
    order = word(op.memory_ordering_semantics)
    need(order in allowed, f"{order} is not possible here: one of {', '.join(allowed)}")
    scope = getattr(op, "memory_scope", None)
    need((order == "weak") == (scope is None), f"{order} {'takes no' if order == 'weak' else 'needs a'} memory scope")


WORDS = (t.i32, t.i64)
LOADS, STORES = ("weak", "relaxed", "acquire"), ("weak", "relaxed", "release")
ATOMICS = ("relaxed", "acquire", "release", "acq_rel")


def _through_view(op: Any, tile: SSAValue) -> None:
    kind = op.view.type
    need(tile.type == kind.tile, f"the tiles of {spell(kind)} are {spell(kind.tile)}, not {spell(tile.type)}")
    need(len(op.index) == kind.index_rank, f"there are {kind.index_rank} dimensions, but {len(op.index)} indices")
    if not op.name.startswith("cuda_tile.multimem_"):
        _one_place(kind, kind.tensor_view.ptr_attr)
    if element(tile) == t.f4e2m1fn:
        _through_pairs(kind)
    inbounds = getattr(op, "inbounds", None)
    if inbounds is not None:
        need(
            len(inbounds.data) == len(op.index), f"there are {len(op.index)} indices, but {len(inbounds.data)} inbounds"
        )
    sparse = kind.sparse_dim if isinstance(kind, t.GatherScatterViewType) else -1
    for d, index in enumerate(op.index):
        if d == sparse:
            of(index, WORDS, "i32 or i64")
            need(shape(index) == (kind.tile_shape[d],), f"{spell(index.type)} cannot index {kind.tile_shape[d]} rows")
        else:
            scalar_integer(index, "an index")
    if not op.name.endswith("atomic_red_view_tko"):
        same("the types of indices", *(index for d, index in enumerate(op.index) if d != sparse))


def _through_pairs(kind: TileViewType) -> None:
    """Two f4 share a byte along the one dimension that is contiguous."""
    strides = kind.tensor_view.strides
    ones = strides.count(1)
    need(ones == 1, f"f4 is accessed along one dimension with a static stride of 1, but {spell(kind)} has {ones}")
    gathers = isinstance(kind, t.GatherScatterViewType) and strides.index(1) == kind.sparse_dim
    need(not gathers, f"f4 cannot be gathered along the dimension that is contiguous: {spell(kind)}")


# The padding values that a type cannot represent. The compiler ends without a reason for a load that needs one.
UNPADDED: dict[Attribute, tuple[str, ...]] = {
    t.f8e4m3fn: ("pos_inf", "neg_inf"),
    t.f8e8m0fnu: ("neg_zero", "pos_inf", "neg_inf"),
    t.f8e5m3fnu: ("neg_zero", "pos_inf", "neg_inf"),
    t.f4e2m1fn: ("nan", "pos_inf", "neg_inf"),
}


@rule("load_view_tko")
def _load_view(op: Any) -> None:
    _ordering(op, LOADS)
    _through_view(op, op.tile)
    kind, padding = element(op.tile), op.view.type.padding_value
    need(padding not in UNPADDED.get(kind, ()), f"padding_value = {padding} is not a value of {spell(kind)}")


@rule("store_view_tko")
def _store_view(op: Any) -> None:
    _ordering(op, STORES)
    _through_view(op, op.tile)


def _through_pointers(pointers: SSAValue, value: SSAValue, mask: SSAValue | None) -> None:
    wanted = TileType(shape(pointers), pointee(pointers))
    _one_place(pointers.type, _ptr_attr(element(pointers)))
    need(value.type == wanted, f"{spell(pointers.type)} points to {spell(wanted)}, not {spell(value.type)}")
    if mask is not None:
        booleans(mask, pointers, "the mask")


@rule("load_ptr_tko")
def _load_pointers(op: Any) -> None:
    _ordering(op, LOADS)
    _through_pointers(op.source, op.result, op.mask)
    if op.paddingValue is not None:
        need(
            op.paddingValue.type == op.result.type,
            f"the padding value must be {spell(op.result.type)}, not {spell(op.paddingValue.type)}",
        )


@rule("store_ptr_tko")
def _store_pointers(op: Any) -> None:
    _ordering(op, STORES)
    _through_pointers(op.destination, op.value, op.mask)


MODES = {"addf": (t.f16, t.bf16, t.f32, t.f64), "xchg": (*WORDS, t.f32, t.f64)}


def _mode(op: Any, value: SSAValue) -> None:
    mode = word(op.mode)
    possible = MODES.get(mode, WORDS)
    need(element(value) in possible, f"{mode} is for {', '.join(map(spell, possible))}, not {spell(value.type)}")


@rule("atomic_rmw_tko")
def _atomic(op: Any) -> None:
    _ordering(op, ATOMICS)
    _through_pointers(op.pointers, op.arg, op.mask)
    need(op.result.type == op.arg.type, f"gives {spell(op.arg.type)}, not {spell(op.result.type)}")
    _mode(op, op.arg)


@rule("atomic_cas_tko")
def _compare_and_swap(op: Any) -> None:
    _ordering(op, ATOMICS)
    for value in (op.cmp, op.val, op.result):
        _through_pointers(op.pointers, value, op.mask)
    need(element(op.val) in (*WORDS, t.f32, t.f64), f"swaps i32, i64, f32 or f64, not {spell(op.val.type)}")


@rule("atomic_red_view_tko")
def _atomic_view(op: Any) -> None:
    _ordering(op, ("relaxed",))
    need(
        word(op.memory_scope) != "sys",
        "the elements of a view cannot be reduced with system scope: use tl_blk or device",
    )
    gathers = isinstance(op.view.type, t.GatherScatterViewType)
    need(not gathers, f"{spell(op.view.type)} cannot be reduced into: use a partition view or a strided view")
    need(word(op.mode) != "xchg", "xchg is not possible: a reduction does not return the old value")
    _through_view(op, op.value)
    _mode(op, op.value)


# Multimem

HALVES = (t.f16, t.bf16)


def _multimem(op: Any, tile: SSAValue, orders: tuple[str, ...]) -> None:
    _ordering(op, orders)
    kind = op.view.type
    need(isinstance(kind, t.PartitionViewType), f"{spell(kind)}: multimem operations need a partition view")
    given = kind.tensor_view.ptr_attr
    need(given == "multicast", f"{spell(kind)} is {given or 'of plain pointers'}, but multimem needs multicast ones")
    _through_view(op, tile)
    of(tile, (*WORDS, *HALVES, t.f32, t.f64), "i32, i64, f16, bf16, f32 or f64")
    if element(tile) in HALVES:  # they are accessed in pairs
        ones = kind.tensor_view.strides.count(1)
        need(ones == 1, f"16-bit floats need one dimension with a static stride of 1, but {spell(kind)} has {ones}")
        need(math.prod(shape(tile)) > 1, f"{spell(tile.type)} has one element, but 16-bit floats come in pairs")


def _multimem_reduction(op: Any, tile: SSAValue, extrema: tuple[Attribute, ...]) -> None:
    """`extrema`: the floats that have min and max."""
    kind = word(op.reduction)
    possible = WORDS
    if kind == "add":
        possible = (*WORDS, *HALVES, t.f32, t.f64)
    elif kind in ("min", "max"):
        possible = (*WORDS, *extrema)
    need(element(tile) in possible, f"{kind} is for {', '.join(map(spell, possible))}, not {spell(tile.type)}")


@rule("multimem_load_reduce_view_tko")
def _multimem_load(op: Any) -> None:
    _multimem(op, op.reduced_values, LOADS)
    _multimem_reduction(op, op.reduced_values, HALVES)


@rule("multimem_reduce_view_tko")
def _multimem_reduce(op: Any) -> None:
    _multimem(op, op.tile, ("relaxed", "release"))
    _multimem_reduction(op, op.tile, ())


@rule("multimem_store_view_tko")
def _multimem_store(op: Any) -> None:
    _multimem(op, op.tile, STORES)
