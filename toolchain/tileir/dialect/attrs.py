"""The attributes of Tile IR operations. The members of an enumeration are in the order of their bytecode values, and
each member's value is its word in the text."""

from __future__ import annotations

import math
from typing import ClassVar, Generic, NamedTuple, TypeVar, get_args

from xdsl.ir import Attribute, Data, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum

from .types import SCALARS, TileType, _Opaque, byte_width, i1  # pyright: ignore[reportPrivateUsage]


class RoundingMode(StrEnum):
    NEAREST_EVEN = "nearest_even"
    ZERO = "zero"
    NEGATIVE_INF = "negative_inf"
    POSITIVE_INF = "positive_inf"
    APPROX = "approx"
    FULL = "full"
    NEAREST_INT_TO_ZERO = "nearest_int_to_zero"
    NEAREST_AWAY = "nearest_away"


class IntegerOverflow(StrEnum):
    NONE = "none"
    NSW = "no_signed_wrap"
    NUW = "no_unsigned_wrap"
    NW = "no_wrap"


class Signedness(StrEnum):
    UNSIGNED = "unsigned"
    SIGNED = "signed"


class ComparisonPredicate(StrEnum):
    EQUAL = "equal"
    NOT_EQUAL = "not_equal"
    LESS_THAN = "less_than"
    LESS_THAN_OR_EQUAL = "less_than_or_equal"
    GREATER_THAN = "greater_than"
    GREATER_THAN_OR_EQUAL = "greater_than_or_equal"


class ComparisonOrdering(StrEnum):
    UNORDERED = "unordered"
    ORDERED = "ordered"


class MemoryOrdering(StrEnum):
    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class MemoryScope(StrEnum):
    TL_BLK = "tl_blk"
    DEVICE = "device"
    SYS = "sys"


class AtomicMode(StrEnum):
    AND = "and"
    OR = "or"
    XOR = "xor"
    ADD = "add"
    ADDF = "addf"
    MAX = "max"
    MIN = "min"
    UMAX = "umax"
    UMIN = "umin"
    XCHG = "xchg"


class MultimemReduction(StrEnum):
    ADD = "add"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    UMIN = "umin"
    UMAX = "umax"


E = TypeVar("E", bound=StrEnum, covariant=True)


class EnumAttr(_Opaque, Data[E], Generic[E]):
    """A word of an enumeration. As xDSL's EnumAttribute, whose module takes longer to import than our dialect."""

    enum_type: ClassVar[type[StrEnum]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.enum_type = get_args(vars(cls)["__orig_bases__"][0])[0]


@irdl_attr_definition
class RoundingModeAttr(EnumAttr[RoundingMode], SpacedOpaqueSyntaxAttribute):
    name = "cuda_tile.rounding"


@irdl_attr_definition
class IntegerOverflowAttr(EnumAttr[IntegerOverflow], SpacedOpaqueSyntaxAttribute):
    name = "cuda_tile.overflow"


@irdl_attr_definition
class SignednessAttr(EnumAttr[Signedness], SpacedOpaqueSyntaxAttribute):
    name = "cuda_tile.signedness"


@irdl_attr_definition
class ComparisonPredicateAttr(EnumAttr[ComparisonPredicate], SpacedOpaqueSyntaxAttribute):
    name = "cuda_tile.comparison_predicate"


@irdl_attr_definition
class ComparisonOrderingAttr(EnumAttr[ComparisonOrdering], SpacedOpaqueSyntaxAttribute):
    name = "cuda_tile.comparison_ordering"


@irdl_attr_definition
class MemoryOrderingAttr(EnumAttr[MemoryOrdering], SpacedOpaqueSyntaxAttribute):
    name = "cuda_tile.memory_ordering_semantics"


@irdl_attr_definition
class MemoryScopeAttr(EnumAttr[MemoryScope], SpacedOpaqueSyntaxAttribute):
    name = "cuda_tile.memory_scope"


@irdl_attr_definition
class AtomicModeAttr(EnumAttr[AtomicMode], SpacedOpaqueSyntaxAttribute):
    name = "cuda_tile.atomic_rmw_mode"


@irdl_attr_definition
class MultimemReductionAttr(EnumAttr[MultimemReduction], SpacedOpaqueSyntaxAttribute):
    name = "cuda_tile.multimem_reduction_kind"


T = TypeVar("T", covariant=True)


class _Plain(_Opaque, Data[T], Generic[T]):
    """An attribute around a plain Python value."""


@irdl_attr_definition
class IntAttr(_Plain[int]):
    """A plain integer: a dimension, an alignment."""

    name = "cuda_tile.int"


@irdl_attr_definition
class BoolAttr(_Plain[bool]):
    name = "cuda_tile.bool"


@irdl_attr_definition
class StrAttr(_Plain[str]):
    name = "cuda_tile.str"


@irdl_attr_definition
class IntsAttr(_Plain[tuple[int, ...]]):
    """32-bit integers, such as a permutation."""

    name = "cuda_tile.ints"


@irdl_attr_definition
class BoolsAttr(_Plain[tuple[bool, ...]]):
    """One flag for each operand of a group, such as which indices are known to lie inside."""

    name = "cuda_tile.bools"


@irdl_attr_definition
class AttrsAttr(_Plain[tuple[Attribute, ...]]):
    """Several attributes, such as the identities of a reduction, one per operand."""

    name = "cuda_tile.attrs"


@irdl_attr_definition
class DictAttr(_Plain[tuple[tuple[str, Attribute], ...]]):
    """Attributes by name, in order: what is said of a parameter of an entry."""

    name = "cuda_tile.dict"


class _Number(NamedTuple):
    bits: int
    type: Attribute


@irdl_attr_definition
class NumberAttr(_Plain[_Number]):
    """An integer or float of a scalar type, stored as its bits, such as an identity of a reduction."""

    name = "cuda_tile.number"

    def __init__(self, bits: int, type: Attribute) -> None:  # noqa: A002 (as MLIR names it)
        super().__init__(_Number(bits, type))

    @property
    def bits(self) -> int:
        return self.data.bits

    @property
    def type(self) -> Attribute:
        return self.data.type


class _Dense(NamedTuple):
    raw: bytes
    type: TileType


@irdl_attr_definition
class DenseAttr(_Plain[_Dense]):
    """The value of a `constant`: little-endian elements in row-major order, or one element for all (a splat).

    An i1 splat is 0x00 or 0xFF; i1 elements are packed eight to a byte. tf32 takes three bytes.
    """

    name = "cuda_tile.dense"

    def __init__(self, raw: bytes, type: TileType) -> None:  # noqa: A002 (as MLIR names it)
        super().__init__(_Dense(raw, type))

    @property
    def raw(self) -> bytes:
        return self.data.raw

    @property
    def type(self) -> TileType:
        return self.data.type

    @property
    def is_splat(self) -> bool:
        return _is_splat(self.raw, self.type)


def _is_splat(raw: bytes, kind: TileType) -> bool:
    if kind.element_type != i1:
        return len(raw) == byte_width(kind.element_type)
    # One byte for at most eight elements holds them packed. For more elements it is a splat, of which the compiler's
    # reader takes the lowest bit.
    return raw in (b"\x00", b"\xff") or (len(raw) == 1 and math.prod(kind.shape) > 8)


def is_dense(raw: bytes, kind: TileType) -> bool:
    """True if these bytes can be the value of a constant of this type: one element (a splat), or all elements."""
    count = math.prod(kind.shape)
    if kind.element_type == i1:
        return len(raw) == (count + 7) // 8 or _is_splat(raw, kind)
    size, bits = byte_width(kind.element_type), SCALARS[kind.element_type][1]
    spare = 8 * size - bits  # unused bits of tf32, f4 and i4: must be zero
    wide = spare and max(raw[size - 1 :: size], default=0) >> 8 - spare
    return len(raw) in (size, count * size) and not wide


class _DivBy(NamedTuple):
    divisor: int
    every: int | None
    along: int | None


@irdl_attr_definition
class DivByAttr(_Plain[_DivBy]):
    """`div_by<16>`: all elements are multiples of 16. With `every` n and `along` d, only each n-th element along
    dimension d is."""

    name = "cuda_tile.div_by"

    def __init__(self, divisor: int, every: int | None = None, along: int | None = None) -> None:
        super().__init__(_DivBy(divisor, every, along))

    @property
    def divisor(self) -> int:
        return self.data.divisor

    @property
    def every(self) -> int | None:
        return self.data.every

    @property
    def along(self) -> int | None:
        return self.data.along


class _Bounded(NamedTuple):
    lb: int | None
    ub: int | None


@irdl_attr_definition
class BoundedAttr(_Plain[_Bounded]):
    """`bounded<0, ?>`: all elements lie within these inclusive bounds."""

    name = "cuda_tile.bounded"

    def __init__(self, lb: int | None, ub: int | None) -> None:
        super().__init__(_Bounded(lb, ub))

    @property
    def lb(self) -> int | None:
        return self.data.lb

    @property
    def ub(self) -> int | None:
        return self.data.ub


@irdl_attr_definition
class SameElementsAttr(_Plain[tuple[int, ...]]):
    """`same_elements<[4, 1]>`: elements are equal within groups of these sizes, one size per dimension."""

    name = "cuda_tile.same_elements"


@irdl_attr_definition
class HintsAttr(_Plain[tuple[tuple[str, tuple[tuple[str, int | bool], ...]], ...]]):
    """Compiler hints by architecture ("sm_90" or "default"): ((arch, ((key, value), ...)), ...), in order."""

    name = "cuda_tile.optimization_hints"
