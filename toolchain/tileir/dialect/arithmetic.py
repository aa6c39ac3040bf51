"""Element-wise operations on tiles of numbers, and the matrix products."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from .attrs import (
    ComparisonOrderingAttr,
    ComparisonPredicateAttr,
    IntegerOverflow,
    IntegerOverflowAttr,
    RoundingMode,
    RoundingModeAttr,
    SignednessAttr,
)
from .base import V13_2, V13_3, V13_4, TileOp, tile_op
from .types import TileType

FULL = RoundingModeAttr(RoundingMode.FULL)


class UnaryOp(TileOp):
    result = result_def(TileType)
    source = operand_def(TileType)


class BinaryOp(TileOp):
    result = result_def(TileType)
    lhs = operand_def(TileType)
    rhs = operand_def(TileType)


class RoundedBinaryOp(BinaryOp):
    """A float operation with a rounding mode; `flush_to_zero`: subnormals become 0."""

    flush_to_zero = opt_prop_def(UnitAttr)
    rounding_mode = prop_def(RoundingModeAttr)


class WrappingBinaryOp(BinaryOp):
    """An integer operation that may promise not to overflow."""

    overflow = prop_def(IntegerOverflowAttr)


class SignedBinaryOp(BinaryOp):
    signedness = prop_def(SignednessAttr)


class ExtremumOp(BinaryOp):
    """If one operand is NaN, the result is the other, or NaN with `propagate_nan`. +0 counts as larger than -0."""

    propagate_nan = opt_prop_def(UnitAttr)
    flush_to_zero = opt_prop_def(UnitAttr)


@tile_op("absf", 0)
class AbsFOp(UnaryOp):
    pass


@tile_op("absi", 1)
class AbsIOp(UnaryOp):
    pass


@tile_op("addf", 2)
class AddFOp(RoundedBinaryOp):
    pass


@tile_op("addi", 3)
class AddIOp(WrappingBinaryOp):
    pass


@tile_op("andi", 4)
class AndIOp(BinaryOp):
    pass


@tile_op("atan2", 110, since=V13_2)
class Atan2Op(TileOp):
    result = result_def(TileType)
    x = operand_def(TileType)
    y = operand_def(TileType)


@tile_op("ceil", 13)
class CeilOp(UnaryOp):
    pass


@tile_op("cmpf", 14)
class CmpFOp(BinaryOp):
    comparison_predicate = prop_def(ComparisonPredicateAttr)
    comparison_ordering = prop_def(ComparisonOrderingAttr)


@tile_op("cmpi", 15)
class CmpIOp(BinaryOp):
    comparison_predicate = prop_def(ComparisonPredicateAttr)
    signedness = prop_def(SignednessAttr)


@tile_op("cos", 18)
class CosOp(UnaryOp):
    pass


@tile_op("cosh", 19)
class CosHOp(UnaryOp):
    pass


@tile_op("divf", 20)
class DivFOp(RoundedBinaryOp):
    pass


@tile_op("divi", 21)
class DivIOp(BinaryOp):  # no base class: inherited fields would come after its own
    signedness = prop_def(SignednessAttr)
    rounding = prop_def(RoundingModeAttr)


@tile_op(
    "exp", 23, fields_since={"rounding_mode": V13_3}, defaults={"rounding_mode": RoundingModeAttr(RoundingMode.FULL)}
)
class ExpOp(UnaryOp):
    rounding_mode = prop_def(RoundingModeAttr)


@tile_op("exp2", 24)
class Exp2Op(UnaryOp):
    flush_to_zero = opt_prop_def(UnitAttr)


@tile_op("floor", 39)
class FloorOp(UnaryOp):
    pass


@tile_op("fma", 40)
class FmaOp(TileOp):
    """lhs * rhs + acc, rounded once."""

    result = result_def(TileType)
    flush_to_zero = opt_prop_def(UnitAttr)
    rounding_mode = prop_def(RoundingModeAttr)
    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    acc = operand_def(TileType)


@tile_op("log", 63)
class LogOp(UnaryOp):
    pass


@tile_op("log2", 64)
class Log2Op(UnaryOp):
    pass


@tile_op("maxf", 69)
class MaxFOp(ExtremumOp):
    pass


@tile_op("maxi", 70)
class MaxIOp(SignedBinaryOp):
    pass


@tile_op("minf", 71)
class MinFOp(ExtremumOp):
    pass


@tile_op("mini", 72)
class MinIOp(SignedBinaryOp):
    pass


class MmaOp(TileOp):
    """acc + lhs @ rhs, for (M, K), (K, N), (M, N) tiles or batches of them. The order of additions is unspecified."""

    result = result_def(TileType)
    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    acc = operand_def(TileType)


@tile_op("mmaf", 73, fields_since={"fast_acc": V13_3})
class MmaFOp(MmaOp):
    fast_acc = opt_prop_def(UnitAttr)


@tile_op("mmai", 74)
class MmaIOp(MmaOp):
    signedness_lhs = prop_def(SignednessAttr)
    signedness_rhs = prop_def(SignednessAttr)


@tile_op("mmaf_scaled", 114, since=V13_3)
class MmaFScaledOp(TileOp):
    result = result_def(TileType)
    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    acc = operand_def(TileType)
    lhs_scale = operand_def(TileType)
    rhs_scale = operand_def(TileType)


@tile_op("mulf", 76)
class MulFOp(RoundedBinaryOp):
    pass


@tile_op("mulhii", 77)
class MulhiIOp(TileOp):
    """The upper half of an unsigned product."""

    result = result_def(TileType)
    x = operand_def(TileType)
    y = operand_def(TileType)


@tile_op("muli", 78)
class MulIOp(WrappingBinaryOp):
    pass


@tile_op("negf", 79)
class NegFOp(UnaryOp):
    pass


@tile_op("negi", 80, fields_since={"overflow": V13_2}, defaults={"overflow": IntegerOverflowAttr(IntegerOverflow.NONE)})
class NegIOp(UnaryOp):
    overflow = prop_def(IntegerOverflowAttr)


@tile_op("ori", 82)
class OrIOp(BinaryOp):
    pass


@tile_op("fpowf", 84)
class FPowFOp(TileOp):
    result = result_def(TileType)
    source = operand_def(TileType)
    exponent = operand_def(TileType)


@tile_op("fpowi", 121, since=V13_4)
class FPowIOp(TileOp):
    """A power whose exponent is a signed integer."""

    result = result_def(TileType)
    source = operand_def(TileType)
    exponent = operand_def(TileType)


@tile_op("remf", 89)
class RemFOp(BinaryOp):
    pass


@tile_op("remi", 90)
class RemIOp(SignedBinaryOp):
    pass


@tile_op("rsqrt", 93)
class RsqrtOp(UnaryOp):
    flush_to_zero = opt_prop_def(UnitAttr)


@tile_op("shli", 96)
class ShLIOp(WrappingBinaryOp):
    pass


@tile_op("shri", 97)
class ShRIOp(SignedBinaryOp):
    pass


@tile_op("sin", 98)
class SinOp(UnaryOp):
    pass


@tile_op("sinh", 99)
class SinHOp(UnaryOp):
    pass


@tile_op("sqrt", 100)
class SqrtOp(UnaryOp):
    flush_to_zero = opt_prop_def(UnitAttr)
    rounding_mode = prop_def(RoundingModeAttr)


@tile_op("subf", 103)
class SubFOp(RoundedBinaryOp):
    pass


@tile_op("subi", 104)
class SubIOp(WrappingBinaryOp):
    pass


@tile_op("tan", 105)
class TanOp(UnaryOp):
    pass


@tile_op(
    "tanh", 106, fields_since={"rounding_mode": V13_2}, defaults={"rounding_mode": RoundingModeAttr(RoundingMode.FULL)}
)
class TanHOp(UnaryOp):
    rounding_mode = prop_def(RoundingModeAttr)


@tile_op("xori", 108)
class XOrIOp(BinaryOp):
    pass
