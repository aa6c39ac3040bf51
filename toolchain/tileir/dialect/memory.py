"""Global memory: pointers, views, tokens, loads, stores and atomics."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from .attrs import (
    AtomicModeAttr,
    BoolsAttr,
    BoundedAttr,
    DivByAttr,
    HintsAttr,
    IntAttr,
    MemoryOrderingAttr,
    MemoryScopeAttr,
    MultimemReductionAttr,
    SameElementsAttr,
    StrAttr,
)
from .base import SEGMENTS, V13_3, V13_4, V13_5, TileOp, tile_op
from .types import TensorViewType, TileType, TileViewType, TokenType

Predicate = DivByAttr | BoundedAttr | SameElementsAttr


@tile_op("assume", 6)
class AssumeOp(TileOp):
    """A promise to the compiler about a value. The behaviour is undefined if the promise does not hold."""

    result = result_def()
    predicate = prop_def(Predicate)
    value = operand_def()


class TileBlockOp(TileOp):
    """Three i32 scalars: x, y and z."""

    x = result_def(TileType)
    y = result_def(TileType)
    z = result_def(TileType)


@tile_op("get_tile_block_id", 48)
class GetTileBlockIdOp(TileBlockOp):
    """Which block of the grid this is."""


@tile_op("get_num_tile_blocks", 46)
class GetNumTileBlocksOp(TileBlockOp):
    """How many blocks the grid has along each dimension."""


@tile_op("get_global", 44)
class GetGlobalOp(TileOp):
    """A pointer to the first element of a global of the module."""

    result = result_def(TileType)
    global_name = prop_def(StrAttr)


@tile_op("alloca", 113, since=V13_3)
class AllocaOp(TileOp):
    """Memory of its own for each block, for `num_elem` elements, not initialized; `alignment` in bytes."""

    result = result_def(TileType)
    global_ = opt_prop_def(UnitAttr)
    num_elem = prop_def(IntAttr)
    alignment = prop_def(IntAttr)


@tile_op("offset", 81)
class OffsetOp(TileOp):
    """Moves pointers by a number of elements."""

    result = result_def(TileType)
    ptr = operand_def(TileType)
    offset = operand_def(TileType)


@tile_op("make_token", 68)
class MakeTokenOp(TileOp):
    """A token that nothing has to come before: where a chain of ordered accesses starts."""

    result = result_def(TokenType)


@tile_op("join_tokens", 60)
class JoinTokensOp(TileOp):
    """A token for several: what takes it comes after all of them."""

    result = result_def(TokenType)
    tokens = var_operand_def(TokenType)


@tile_op("memory_fence_alias_tko", 122, since=V13_4)
class MemoryFenceAliasTkoOp(TileOp):
    """Orders accesses that reach the same memory through different addresses; tokens say which accesses."""

    result_token = result_def(TokenType)
    token = operand_def(TokenType)


class GdcTkoOp(TileOp):
    """Grid dependency control: launches may overlap, and these operations make one wait for another."""

    result_token = result_def(TokenType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


@tile_op("gdc_launch_dependents_tko", 119, since=V13_4)
class GdcLaunchDependentsTkoOp(GdcTkoOp):
    """Allows the launch that depends on this one to begin."""


@tile_op("gdc_wait_tko", 120, since=V13_4)
class GdcWaitTkoOp(GdcTkoOp):
    """Waits until the launches that this one depends on have ended and their writes are visible."""


@tile_op("make_tensor_view", 67)
class MakeTensorViewOp(TileOp):
    """Describes an array in memory: a pointer with sizes and strides, in elements. Nothing is read. Sizes and strides
    in the type are static, those written `?` are operands."""

    result = result_def(TensorViewType)
    base = operand_def(TileType)
    dynamicShape = var_operand_def(TileType)  # noqa: N815 (the format's own name)
    dynamicStrides = var_operand_def(TileType)  # noqa: N815
    irdl_options = (SEGMENTS,)


class MakeViewOp(TileOp):
    result = result_def(TileViewType)
    tensor_view = operand_def(TensorViewType)


@tile_op("make_partition_view", 66)
class MakePartitionViewOp(MakeViewOp):
    """Cuts an array into tiles side by side, so that an index for each dimension selects one. Elements outside the
    array are read as `padding_value`, and are unspecified without one."""


@tile_op("make_strided_view", 116, since=V13_3)
class MakeStridedViewOp(MakeViewOp):
    """Cuts an array into tiles that start every `traversal_strides` elements, so that they may overlap, as windows of a
    convolution do."""


@tile_op("make_gather_scatter_view", 115, since=V13_3)
class MakeGatherScatterViewOp(MakeViewOp):
    """Selects rows of an array one by one: the index along `sparse_dim` is a tile with a row number for each row."""


@tile_op("get_tensor_shape", 47)
class GetTensorShapeOp(TileOp):
    """The sizes of an array, one result for each dimension."""

    sizes = var_result_def(TileType)
    src = operand_def(TensorViewType)


@tile_op("get_index_space_shape", 45)
class GetIndexSpaceShapeOp(TileOp):
    """The number of tiles that a view has along each dimension."""

    sizes = var_result_def(TileType)
    src = operand_def(TileViewType)


@tile_op("load_ptr_tko", 61)
class LoadPtrTkoOp(TileOp):
    """Loads through pointers. Elements whose mask is false become `paddingValue`, or are unspecified without one."""

    result = result_def(TileType)
    result_token = result_def(TokenType)
    memory_ordering_semantics = prop_def(MemoryOrderingAttr)
    memory_scope = opt_prop_def(MemoryScopeAttr)
    optimization_hints = opt_prop_def(HintsAttr)
    source = operand_def(TileType)
    mask = opt_operand_def(TileType)
    paddingValue = opt_operand_def(TileType)  # noqa: N815 (the format's own name)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


@tile_op("store_ptr_tko", 101)
class StorePtrTkoOp(TileOp):
    """Stores through pointers. Elements whose mask is false are not stored."""

    result_token = result_def(TokenType)
    memory_ordering_semantics = prop_def(MemoryOrderingAttr)
    memory_scope = opt_prop_def(MemoryScopeAttr)
    optimization_hints = opt_prop_def(HintsAttr)
    destination = operand_def(TileType)
    value = operand_def(TileType)
    mask = opt_operand_def(TileType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


@tile_op("load_view_tko", 62, fields_since={"inbounds": V13_4}, one_each={"inbounds": "index"})
class LoadViewTkoOp(TileOp):
    """Loads a tile of a view. `inbounds` promises for each dimension that no element lies outside the array; the
    behaviour is undefined if one does."""

    tile = result_def(TileType)
    result_token = result_def(TokenType)
    memory_ordering_semantics = prop_def(MemoryOrderingAttr)
    memory_scope = opt_prop_def(MemoryScopeAttr)
    optimization_hints = opt_prop_def(HintsAttr)
    inbounds = opt_prop_def(BoolsAttr)
    view = operand_def(TileViewType)
    index = var_operand_def(TileType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


@tile_op("store_view_tko", 102, fields_since={"inbounds": V13_4}, one_each={"inbounds": "index"})
class StoreViewTkoOp(TileOp):
    """Stores a tile of a view. Elements outside the array are not stored. `inbounds` as for `load_view_tko`."""

    result_token = result_def(TokenType)
    memory_ordering_semantics = prop_def(MemoryOrderingAttr)
    memory_scope = opt_prop_def(MemoryScopeAttr)
    optimization_hints = opt_prop_def(HintsAttr)
    inbounds = opt_prop_def(BoolsAttr)
    tile = operand_def(TileType)
    view = operand_def(TileViewType)
    index = var_operand_def(TileType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


@tile_op("atomic_cas_tko", 7)
class AtomicCASTkoOp(TileOp):
    """Compare and swap: where memory holds `cmp`, stores `val`. Gives what memory held before. Each element is an
    atomic access of its own."""

    result = result_def(TileType)
    result_token = result_def(TokenType)
    memory_ordering_semantics = prop_def(MemoryOrderingAttr)
    memory_scope = prop_def(MemoryScopeAttr)
    pointers = operand_def(TileType)
    cmp = operand_def(TileType)
    val = operand_def(TileType)
    mask = opt_operand_def(TileType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


@tile_op("atomic_rmw_tko", 8)
class AtomicRMWTkoOp(TileOp):
    """Reads, combines with `arg` by `mode`, and writes back, as one access for each element. Gives what memory held
    before."""

    result = result_def(TileType)
    result_token = result_def(TokenType)
    memory_ordering_semantics = prop_def(MemoryOrderingAttr)
    memory_scope = prop_def(MemoryScopeAttr)
    mode = prop_def(AtomicModeAttr)
    pointers = operand_def(TileType)
    arg = operand_def(TileType)
    mask = opt_operand_def(TileType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


@tile_op("atomic_red_view_tko", 117, since=V13_3, fields_since={"inbounds": V13_5}, one_each={"inbounds": "index"})
class AtomicRedViewTkoOp(TileOp):
    """Combines a tile into the elements of a view, each atomically. Unlike `atomic_rmw_tko` it does not give what
    memory held before. `inbounds` as for `load_view_tko`."""

    result_token = result_def(TokenType)
    memory_ordering_semantics = prop_def(MemoryOrderingAttr)
    memory_scope = prop_def(MemoryScopeAttr)
    mode = prop_def(AtomicModeAttr)
    inbounds = opt_prop_def(BoolsAttr)
    view = operand_def(TileViewType)
    index = var_operand_def(TileType)
    value = operand_def(TileType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


# Multimem: one multicast address stands for the same place in the memory of several GPUs, which NVSwitch reaches all at
# once.


@tile_op("multimem_load_reduce_view_tko", 123, since=V13_5, one_each={"inbounds": "index"})
class MultimemLoadReduceViewTkoOp(TileOp):
    """Loads a tile from each of the GPUs that a multicast view stands for, and combines them by `reduction`. The order
    of the GPUs is unspecified. `inbounds` as for `load_view_tko`."""

    reduced_values = result_def(TileType)
    result_token = result_def(TokenType)
    memory_ordering_semantics = prop_def(MemoryOrderingAttr)
    memory_scope = opt_prop_def(MemoryScopeAttr)
    reduction = prop_def(MultimemReductionAttr)
    inbounds = opt_prop_def(BoolsAttr)
    view = operand_def(TileViewType)
    index = var_operand_def(TileType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


@tile_op("multimem_reduce_view_tko", 124, since=V13_5, one_each={"inbounds": "index"})
class MultimemReduceViewTkoOp(TileOp):
    """Combines a tile into the memory of each of the GPUs that a multicast view stands for, each element atomically.
    `inbounds` as for `load_view_tko`."""

    result_token = result_def(TokenType)
    memory_ordering_semantics = prop_def(MemoryOrderingAttr)
    memory_scope = prop_def(MemoryScopeAttr)
    reduction = prop_def(MultimemReductionAttr)
    inbounds = opt_prop_def(BoolsAttr)
    view = operand_def(TileViewType)
    tile = operand_def(TileType)
    index = var_operand_def(TileType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)


@tile_op("multimem_store_view_tko", 125, since=V13_5, one_each={"inbounds": "index"})
class MultimemStoreViewTkoOp(TileOp):
    """Stores a tile into the memory of each of the GPUs that a multicast view stands for. `inbounds` as for
    `load_view_tko`."""

    result_token = result_def(TokenType)
    memory_ordering_semantics = prop_def(MemoryOrderingAttr)
    memory_scope = opt_prop_def(MemoryScopeAttr)
    inbounds = opt_prop_def(BoolsAttr)
    view = operand_def(TileViewType)
    tile = operand_def(TileType)
    index = var_operand_def(TileType)
    token = opt_operand_def(TokenType)
    irdl_options = (SEGMENTS,)
