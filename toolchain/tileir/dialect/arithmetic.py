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
    """|x|, the sign bit cleared. Of a NaN a GPU makes the one NaN of its arithmetic."""


@tile_op("absi", 1)
class AbsIOp(UnaryOp):
    """|x| of a signed integer. The smallest number of the type has no positive counterpart and stays as it is."""


@tile_op("addf", 2)
class AddFOp(RoundedBinaryOp):
    """lhs + rhs."""


@tile_op("addi", 3)
class AddIOp(WrappingBinaryOp):
    """lhs + rhs. The result wraps, unless `overflow` promises that it never has to; then wrapping is undefined
    behaviour."""


@tile_op("andi", 4)
class AndIOp(BinaryOp):
    """Bitwise and."""


@tile_op("atan2", 110, since=V13_2)
class Atan2Op(TileOp):
    """The angle of the point (y, x), in radians from -pi to pi: the arc tangent of x / y, in the quadrant that both
    signs give. The first operand is named x, but it is the ordinate."""

    result = result_def(TileType)
    x = operand_def(TileType)
    y = operand_def(TileType)


@tile_op("ceil", 13)
class CeilOp(UnaryOp):
    """The smallest integer that is not less than the value, as a float."""


@tile_op("cmpf", 14)
class CmpFOp(BinaryOp):
    """Compares floats. If an operand is NaN, an `ordered` comparison is false and an `unordered` one is true."""

    comparison_predicate = prop_def(ComparisonPredicateAttr)
    comparison_ordering = prop_def(ComparisonOrderingAttr)


@tile_op("cmpi", 15)
class CmpIOp(BinaryOp):
    """Compares integers, which are read as `signed` or `unsigned`."""

    comparison_predicate = prop_def(ComparisonPredicateAttr)
    signedness = prop_def(SignednessAttr)


@tile_op("cos", 18)
class CosOp(UnaryOp):
    """The cosine of an angle in radians."""


@tile_op("cosh", 19)
class CosHOp(UnaryOp):
    """The hyperbolic cosine."""


@tile_op("divf", 20)
class DivFOp(RoundedBinaryOp):
    """lhs / rhs. `approx` and `full` are faster and less exact, for f32 only: `full` keeps to 2 ulp over the whole
    range, `approx` does not for very large divisors."""


@tile_op("divi", 21)
class DivIOp(BinaryOp):  # no base class: inherited fields would come after its own
    """lhs / rhs, rounded towards zero, or up or down if `rounding` says so. A divisor of 0 is undefined behaviour."""

    signedness = prop_def(SignednessAttr)
    rounding = prop_def(RoundingModeAttr)


@tile_op(
    "exp", 23, fields_since={"rounding_mode": V13_3}, defaults={"rounding_mode": RoundingModeAttr(RoundingMode.FULL)}
)
class ExpOp(UnaryOp):
    """e to the power of the value. `approx` is the GPU's own instruction, for f32 only."""

    rounding_mode = prop_def(RoundingModeAttr)


@tile_op("exp2", 24)
class Exp2Op(UnaryOp):
    """2 to the power of the value, for which GPUs have an instruction. exp(x) is exp2(x * log2(e))."""

    flush_to_zero = opt_prop_def(UnitAttr)


@tile_op("floor", 39)
class FloorOp(UnaryOp):
    """The largest integer that is not greater than the value, as a float."""


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
    """The natural logarithm. It is NaN for a negative number, minus infinity for 0."""


@tile_op("log2", 64)
class Log2Op(UnaryOp):
    """The logarithm to base 2. It is NaN for a negative number, minus infinity for 0."""


@tile_op("maxf", 69)
class MaxFOp(ExtremumOp):
    """The larger of two floats."""


@tile_op("maxi", 70)
class MaxIOp(SignedBinaryOp):
    """The larger of two integers, which are read as `signed` or `unsigned`."""


@tile_op("minf", 71)
class MinFOp(ExtremumOp):
    """The smaller of two floats."""


@tile_op("mini", 72)
class MinIOp(SignedBinaryOp):
    """The smaller of two integers, which are read as `signed` or `unsigned`."""


class MmaOp(TileOp):
    """acc + lhs @ rhs, for (M, K), (K, N), (M, N) tiles or batches of them. The order of additions is unspecified."""

    result = result_def(TileType)
    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    acc = operand_def(TileType)


@tile_op("mmaf", 73, fields_since={"fast_acc": V13_3})
class MmaFOp(MmaOp):
    """acc + lhs @ rhs of floats, on tensor cores where the type has them. `fast_acc` lets products of 8-bit floats be
    added with fewer bits."""

    fast_acc = opt_prop_def(UnitAttr)


@tile_op("mmai", 74)
class MmaIOp(MmaOp):
    """acc + lhs @ rhs of 8-bit integers, each operand read as `signed` or `unsigned`."""

    signedness_lhs = prop_def(SignednessAttr)
    signedness_rhs = prop_def(SignednessAttr)


@tile_op("mmaf_scaled", 114, since=V13_3)
class MmaFScaledOp(TileOp):
    """acc + (lhs * lhs_scale) @ (rhs * rhs_scale), where 16 or 32 elements along K share a scale."""

    result = result_def(TileType)
    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    acc = operand_def(TileType)
    lhs_scale = operand_def(TileType)
    rhs_scale = operand_def(TileType)


@tile_op("mulf", 76)
class MulFOp(RoundedBinaryOp):
    """lhs * rhs."""


@tile_op("mulhii", 77)
class MulhiIOp(TileOp):
    """The upper half of an unsigned product."""

    result = result_def(TileType)
    x = operand_def(TileType)
    y = operand_def(TileType)


@tile_op("muli", 78)
class MulIOp(WrappingBinaryOp):
    """lhs * rhs: the lower half of the product. `overflow` as for `addi`."""


@tile_op("negf", 79)
class NegFOp(UnaryOp):
    """-x, the sign bit flipped. Of a NaN a GPU makes the one NaN of its arithmetic."""


@tile_op("negi", 80, fields_since={"overflow": V13_2}, defaults={"overflow": IntegerOverflowAttr(IntegerOverflow.NONE)})
class NegIOp(UnaryOp):
    """-x. The smallest number of the type stays as it is; with `no_signed_wrap` that is undefined behaviour."""

    overflow = prop_def(IntegerOverflowAttr)


@tile_op("ori", 82)
class OrIOp(BinaryOp):
    """Bitwise or."""


@tile_op("pow", 84)
class PowOp(TileOp):
    """source to the power of exponent, both floats. NVIDIA's disassembler writes `fpowf` since 13.4."""

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
    """The remainder of a division that was rounded towards zero: it has the sign of lhs."""


@tile_op("remi", 90)
class RemIOp(SignedBinaryOp):
    """The remainder of a division that was rounded towards zero: it has the sign of lhs. A divisor of 0 is undefined
    behaviour."""


@tile_op("rsqrt", 93)
class RsqrtOp(UnaryOp):
    """1 / sqrt(x)."""

    flush_to_zero = opt_prop_def(UnitAttr)


@tile_op("shli", 96)
class ShLIOp(WrappingBinaryOp):
    """lhs shifted left by rhs bits. A shift by the type's width or more is undefined behaviour. `overflow` as for
    `addi`."""


@tile_op("shri", 97)
class ShRIOp(SignedBinaryOp):
    """lhs shifted right by rhs bits: `signed` fills with the sign bit, `unsigned` with zeros. A shift by the type's
    width or more is undefined behaviour."""


@tile_op("sin", 98)
class SinOp(UnaryOp):
    """The sine of an angle in radians."""


@tile_op("sinh", 99)
class SinHOp(UnaryOp):
    """The hyperbolic sine."""


@tile_op("sqrt", 100)
class SqrtOp(UnaryOp):
    """The square root. `approx` is the GPU's own instruction, for f32 only."""

    flush_to_zero = opt_prop_def(UnitAttr)
    rounding_mode = prop_def(RoundingModeAttr)


@tile_op("subf", 103)
class SubFOp(RoundedBinaryOp):
    """lhs - rhs."""


@tile_op("subi", 104)
class SubIOp(WrappingBinaryOp):
    """lhs - rhs. `overflow` as for `addi`."""


@tile_op("tan", 105)
class TanOp(UnaryOp):
    """The tangent of an angle in radians."""


@tile_op(
    "tanh", 106, fields_since={"rounding_mode": V13_2}, defaults={"rounding_mode": RoundingModeAttr(RoundingMode.FULL)}
)
class TanHOp(UnaryOp):
    """The hyperbolic tangent. `approx` is the GPU's own instruction, for f32 only."""

    rounding_mode = prop_def(RoundingModeAttr)


@tile_op("xori", 108)
class XOrIOp(BinaryOp):
    """Bitwise exclusive or."""
