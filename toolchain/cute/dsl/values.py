"""What a traced function holds: numbers, scalars, and tensors, each a value of the kernel under construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    DictionaryAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    f32,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMArrayType, LLVMPointerType
from xdsl.ir import Attribute, Operation, SSAValue

from ...errors import UsageError
from ..dialect.ops import OPERATIONS
from ..dialect.tensor_ops import LoadOp, MakePtrOp, StoreOp
from ..dialect.tensors import BITS, DTYPES, CoordTensorType, MemRefType, Pointer, PtrType, Tensor
from ..dialect.types import CoordType, CuteType, LayoutType, ShapeType, StrideType, TileType
from ..layout import Dynamic, Layout
from ..layout import tuples as nested
from ..nvvm.index import Index, as_value
from ..nvvm.index import index as bound_index
from .trace import current

Number = int | Index


def op(name: str) -> Any:
    """The operation of `cute` with a name."""
    return OPERATIONS[name]


def number(value: SSAValue, *, below: int | None = None, divisibility: int = 1) -> Index:
    """An i32 of the kernel as a number."""
    return bound_index(value, current().builder, below=below, divisibility=divisibility)


def ssa(value: Any) -> SSAValue:
    """A number, a scalar or a value as a value of the kernel."""
    if isinstance(value, SSAValue):
        return value
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, TensorValue):
        return value.value
    return as_value(value, current().builder)


def tuple_value(kind: type[CuteType], data: Any) -> SSAValue:
    """A tuple, of the kind of a shape, a stride or a coordinate. Raises UsageError for what is none."""
    trace = current()
    leaves = [leaf for leaf in nested.flatten(data) if isinstance(leaf, Index)]
    plain = kind(nested.transform(_unbound, data))
    if not leaves:
        return trace.static(plain)
    makers: dict[type[CuteType], str] = {ShapeType: "make_shape", StrideType: "make_stride", CoordType: "make_coord"}
    values = [ssa(leaf) for leaf in leaves]
    return trace.builder.once((plain, *values), op(makers[kind]), values, plain)


def _unbound(leaf: Any) -> Any:
    return Dynamic(leaf.width, leaf.divisibility) if isinstance(leaf, Index) else leaf


def layout_value(layout: Layout) -> SSAValue:
    """A layout as a value of `cute`."""
    if not any(isinstance(x, Index) for x in nested.flatten((layout.shape, layout.stride))):
        return current().static(LayoutType(layout))
    shape, stride = tuple_value(ShapeType, layout.shape), tuple_value(StrideType, layout.stride)
    return current().insert(op("make_layout")([shape, stride])).res


def tile_value(tile: Any) -> SSAValue:
    """A tile: sizes, layouts or None."""
    parts = tuple(p if p is None or isinstance(p, Layout) else Layout(p, 1) for p in tile)
    return current().static(TileType(parts))


@dataclass(frozen=True)
class Scalar:
    """One element in a register. Arithmetic of floats and comparisons; both sides have one dtype."""

    value: SSAValue

    @property
    def type(self) -> Attribute:
        return self.value.type

    def _other(self, other: Any) -> SSAValue:
        return other.value if isinstance(other, Scalar) else scalar(other, self.type).value

    def _do(self, kind: type[Operation], other: Any) -> Scalar:
        return Scalar(current().make(kind, (self.value, self._other(other)), (self.type,)).results[0])

    def __add__(self, other: Any) -> Scalar:
        return self._do(arith.AddiOp if self._whole else arith.AddfOp, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Scalar:
        return self._do(arith.MuliOp if self._whole else arith.MulfOp, other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Scalar:
        return self._do(arith.SubiOp if self._whole else arith.SubfOp, other)

    def __truediv__(self, other: Any) -> Scalar:
        return self._do(arith.DivfOp, other)

    def maximum(self, other: Any) -> Scalar:
        return self._do(arith.MaxnumfOp, other)

    @property
    def _whole(self) -> bool:
        return isinstance(self.type, IntegerType)

    def fma(self, factor: Any, addend: Any) -> Scalar:
        """self * factor + addend, rounded once."""
        return Scalar(current().insert(math.FmaOp(self.value, self._other(factor), self._other(addend))).result)

    def sqrt(self) -> Scalar:
        return Scalar(current().insert(math.SqrtOp(self.value)).result)

    def to(self, dtype: str) -> Scalar:
        """Converted to a float dtype, rounded to nearest even."""
        wanted = DTYPES[dtype]
        if wanted == self.type:
            return self
        if self._whole:
            return Scalar(current().insert(arith.SIToFPOp(self.value, wanted)).result)  # pyright: ignore[reportArgumentType]
        wider = BITS[dtype] > _bits(self.type)
        made = (arith.ExtFOp if wider else arith.TruncFOp)(self.value, wanted)
        return Scalar(current().insert(made).results[0])


def _bits(kind: Attribute) -> int:
    return next(BITS[name] for name, known in DTYPES.items() if known == kind)


def scalar(value: Any, kind: Attribute | str = f32) -> Scalar:
    """A constant of a dtype."""
    wanted = DTYPES[kind] if isinstance(kind, str) else kind
    if isinstance(value, Scalar):
        return value
    if isinstance(value, Index):
        return Scalar(ssa(value))
    made: Any = IntegerAttr(value, wanted) if isinstance(wanted, IntegerType) else _float(value, wanted)
    return Scalar(current().insert(arith.ConstantOp(made)).result)


def _float(value: Any, kind: Any) -> Any:
    return FloatAttr(float(value), kind)


def less(a: Any, b: Any) -> SSAValue:
    """a < b, an i1: for numbers that are not negative, or for a float a, where NaN is less than nothing."""
    if isinstance(a, Scalar) and not isinstance(a.type, IntegerType):
        return current().insert(arith.CmpfOp(a.value, scalar(b, a.type).value, "olt")).result
    return current().insert(arith.CmpiOp(ssa(a), ssa(b), "ult")).result


def select(condition: SSAValue, a: Scalar, b: Any) -> Scalar:
    """a where the condition, an i1, is true, else b, which may be a number."""
    return Scalar(current().insert(arith.SelectOp(condition, a.value, scalar(b, a.type).value)).result)


def invert(condition: SSAValue) -> SSAValue:
    """True where an i1 is not."""
    true = current().insert(arith.ConstantOp(IntegerAttr(1, i1))).result
    return current().insert(arith.XOrIOp(condition, true)).result


def both(a: SSAValue, b: SSAValue) -> SSAValue:
    """True if both i1 are."""
    return current().insert(arith.AndIOp(a, b)).result


def same(a: Any, b: Any) -> SSAValue:
    """a == b, an i1."""
    return current().insert(arith.CmpiOp(ssa(a), ssa(b), "eq")).result


@dataclass(frozen=True)
class TensorValue:
    """A tensor of the kernel. `value`: of `!cute.memref` or `!cute.coord_tensor`."""

    value: SSAValue

    @property
    def kind(self) -> MemRefType | CoordTensorType:
        kind = self.value.type
        if not isinstance(kind, MemRefType | CoordTensorType):
            raise UsageError(f"{kind} is no tensor")
        return kind

    @property
    def layout(self) -> Layout:
        return self.kind.data.layout

    @property
    def shape(self) -> Any:
        return self.layout.shape

    @property
    def dtype(self) -> str:
        return self.kind.data.pointer.dtype

    def __getitem__(self, coordinate: Any) -> Any:
        """The part that a coordinate with None leaves open, or the element at a coordinate."""
        where = tuple_value(CoordType, coordinate)
        if any(leaf is None for leaf in nested.flatten(coordinate)):
            return TensorValue(current().insert(op("slice")([self.value, where])).res)
        return Scalar(current().make(LoadOp, (self.value, where), (DTYPES[self.dtype],)).res[0])

    def __setitem__(self, coordinate: Any, value: Any) -> None:
        where = tuple_value(CoordType, coordinate)
        current().make(StoreOp, (self.value, where, scalar(value, self.dtype).value))


def pointer(address: SSAValue, dtype: str, space: str, align: int, swizzle: Any = None) -> SSAValue:
    """A pointer of `cute` from one of the kernel."""
    kind = PtrType(Tensor(Pointer(dtype, space, align, swizzle), Layout(1, 0)))
    return current().insert(MakePtrOp([address], [kind])).res[0]


def view(address: SSAValue, layout: Layout) -> TensorValue:
    """A tensor from a pointer of `cute` and a layout."""
    return TensorValue(current().insert(op("make_view")([address, layout_value(layout)])).res)


@dataclass(frozen=True)
class Array:
    """A kernel parameter: a tensor in global memory, passed as its pointer, its sizes and its strides in elements.

    `multiple`: the strides are multiples of this, but for the last, which is 1. `align`: of the pointer, in bytes.
    """

    dtype: str
    rank: int = 2
    multiple: int = 1
    align: int = 16

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise UsageError(f"no dtype {self.dtype!r}", hint=f"one of {', '.join(DTYPES)}")
        if min(self.rank, self.multiple, self.align) < 1:
            raise UsageError(f"{self}: its rank, multiple and alignment are at least 1")

    @property
    def types(self) -> list[Attribute]:
        return [LLVMPointerType(IntAttr(1)), *[i32] * (2 * self.rank)]

    @property
    def attributes(self) -> list[DictionaryAttr]:
        return [DictionaryAttr({})] * (1 + 2 * self.rank)

    def bind(self, values: list[SSAValue]) -> TensorValue:
        sizes = [number(v) for v in values[1 : 1 + self.rank]]
        strides = [number(v, divisibility=self.multiple) for v in values[1 + self.rank : -1]]
        layout = Layout(tuple(sizes), (*strides, 1)) if self.rank > 1 else Layout(sizes[0], 1)
        made = view(pointer(values[0], self.dtype, "gmem", self.align), layout)
        return SizedTensor(made.value, layout)


@dataclass(frozen=True)
class SizedTensor(TensorValue):
    """A tensor whose sizes the kernel has as numbers."""

    sized: Layout

    @property
    def shape(self) -> Any:
        return self.sized.shape


@dataclass(frozen=True)
class TensorMap:
    """A kernel parameter: a descriptor for TMA of 128 bytes, which `cuTensorMapEncodeTiled` makes."""

    @property
    def types(self) -> list[Attribute]:
        return [LLVMPointerType()]

    @property
    def attributes(self) -> list[DictionaryAttr]:
        said = {
            "llvm.byval": LLVMArrayType(IntAttr(128), i8),
            "llvm.align": IntegerAttr(64, i64),
            "nvvm.grid_constant": UnitAttr(),
        }
        return [DictionaryAttr(said)]

    def bind(self, values: list[SSAValue]) -> SSAValue:
        return values[0]


@dataclass(frozen=True)
class Number32:
    """A kernel parameter: a number that is not negative, an i32."""

    divisibility: int = 1

    @property
    def types(self) -> list[Attribute]:
        return [i32]

    @property
    def attributes(self) -> list[DictionaryAttr]:
        return [DictionaryAttr({})]

    def bind(self, values: list[SSAValue]) -> Index:
        return number(values[0], divisibility=self.divisibility)


@dataclass(frozen=True)
class Float32:
    """A kernel parameter: an f32."""

    @property
    def types(self) -> list[Attribute]:
        return [f32]

    @property
    def attributes(self) -> list[DictionaryAttr]:
        return [DictionaryAttr({})]

    def bind(self, values: list[SSAValue]) -> Scalar:
        return Scalar(values[0])
