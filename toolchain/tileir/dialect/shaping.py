"""Operations that make, convert or rearrange tiles."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.irdl import operand_def, opt_prop_def, prop_def, region_def, result_def, var_operand_def, var_result_def

from .arithmetic import BinaryOp, UnaryOp
from .attrs import (
    AttrsAttr,
    BoolAttr,
    DenseAttr,
    IntAttr,
    IntegerOverflowAttr,
    IntsAttr,
    RoundingModeAttr,
    SignednessAttr,
)
from .base import V13_3, V13_4, TileOp, tile_op
from .types import TileType


class ConversionOp(TileOp):
    to = result_def(TileType)
    from_ = operand_def(TileType)


@tile_op("bitcast", 9)
class BitcastOp(UnaryOp):
    """The same bits as another type of the same width."""


@tile_op("broadcast", 11)
class BroadcastOp(UnaryOp):
    """Repeats a tile along its dimensions of size 1."""


@tile_op("cat", 12)
class CatOp(BinaryOp):
    """Concatenates along `dim`."""

    dim = prop_def(IntAttr)


@tile_op("constant", 16)
class ConstantOp(TileOp):
    """A tile of given numbers. A single number fills it."""

    result = result_def(TileType)
    value = prop_def(DenseAttr)


@tile_op("exti", 37)
class ExtIOp(ConversionOp):
    """A wider integer of the same value: `signed` repeats the sign bit, `unsigned` adds zeros."""

    signedness = prop_def(SignednessAttr)


@tile_op("extract", 38)
class ExtractOp(TileOp):
    """A part of a tile. Its position is given by indices, in units of the result's shape."""

    result = result_def(TileType)
    source = operand_def(TileType)
    indices = var_operand_def(TileType)


@tile_op("ftof", 42)
class FToFOp(ConversionOp):
    """A float of another type, rounded if the type is narrower. Conversions to 8 bits saturate."""

    rounding_mode = prop_def(RoundingModeAttr)


@tile_op("ftoi", 43, fields_since={"saturating": V13_4})
class FToIOp(ConversionOp):
    """A float to an integer. With `saturating`, a number out of range becomes the nearest integer of the type, and NaN
    becomes 0; without, these are undefined. An i1 is true where the float is not 0, for NaN too."""

    saturating = opt_prop_def(UnitAttr)
    signedness = prop_def(SignednessAttr)
    rounding_mode = prop_def(RoundingModeAttr)


@tile_op("itof", 59)
class IToFOp(ConversionOp):
    """An integer, read as `signed` or `unsigned`, as the nearest float. Conversions to 8 bits saturate."""

    signedness = prop_def(SignednessAttr)
    rounding_mode = prop_def(RoundingModeAttr)


@tile_op("insert", 118, since=V13_4)
class InsertOp(TileOp):
    """The destination with one part replaced by the source. The part's position is given by indices, in units of the
    source's shape."""

    result = result_def(TileType)
    source = operand_def(TileType)
    destination = operand_def(TileType)
    indices = var_operand_def(TileType)


@tile_op("int_to_ptr", 51)
class IntToPtrOp(UnaryOp):
    """Addresses as pointers."""


@tile_op("iota", 58)
class IotaOp(TileOp):
    """0, 1, 2, ..."""

    result = result_def(TileType)


@tile_op("pack", 111, since=V13_3)
class PackOp(UnaryOp):
    """A rank-1 tile as the bytes that it has in memory, lowest first."""


@tile_op("permute", 83)
class PermuteOp(UnaryOp):
    """Reorders dimensions: dimension d of the result is dimension `permutation[d]` of the source."""

    permutation = prop_def(IntsAttr)


@tile_op("ptr_to_int", 86)
class PtrToIntOp(UnaryOp):
    """Pointers as addresses."""


@tile_op("ptr_to_ptr", 87)
class PtrToPtrOp(UnaryOp):
    """Pointers to elements of another type, at the same addresses."""


@tile_op("reduce", 88)
class ReduceOp(TileOp):
    """Folds dimension `dim` of one or more tiles; the region takes (lhs, rhs) scalars per tile."""

    outputs = var_result_def(TileType)
    dim = prop_def(IntAttr)
    identities = prop_def(AttrsAttr)
    inputs = var_operand_def(TileType)
    body = region_def("single_block")


@tile_op("reshape", 91)
class ReshapeOp(UnaryOp):
    """The same elements in the same order, in another shape. The last dimension runs fastest."""


@tile_op("scan", 94)
class ScanOp(TileOp):
    """Like `reduce`, but keeps every partial result. Of each tile the region takes what is accumulated so far, then the
    current element, whether from the start or, with `reverse`, from the end."""

    outputs = var_result_def(TileType)
    dim = prop_def(IntAttr)
    reverse = prop_def(BoolAttr)
    identities = prop_def(AttrsAttr)
    inputs = var_operand_def(TileType)
    body = region_def("single_block")


@tile_op("select", 95)
class SelectOp(TileOp):
    """Elements of `val_if_true` where `cond` holds, of `val_if_false` elsewhere."""

    result = result_def(TileType)
    cond = operand_def(TileType)
    val_if_true = operand_def(TileType)
    val_if_false = operand_def(TileType)


@tile_op("trunci", 107)
class TruncIOp(ConversionOp):
    """A narrower integer: keeps the lowest bits. `overflow` promises that the value does not change."""

    overflow = prop_def(IntegerOverflowAttr)


@tile_op("unpack", 112, since=V13_3)
class UnpackOp(UnaryOp):
    """Bytes as the rank-1 tile that they hold in memory: the reverse of `pack`."""
