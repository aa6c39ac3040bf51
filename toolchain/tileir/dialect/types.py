"""The types of Tile IR. Shapes are tuples of ints; a dynamic size is `DYNAMIC`.

Scalars of builtin MLIR (i1 i8 i16 i32 i64 f16 bf16 f32 f64) are xDSL's own types.
Source: the type section of the Tile IR specification, bytecode 13.1 to 13.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

DYNAMIC = -(2**63)  # the bytecode's number for a dynamic size or stride
f16, bf16, f32, f64 = Float16Type(), BFloat16Type(), Float32Type(), Float64Type()


class _Opaque:
    """The base of types that `toolchain.tileir.text` parses and prints, not xDSL."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:  # noqa: ARG003 (xDSL's signature)
        raise TypeError(f"{cls.__name__} is parsed by toolchain.tileir.text")

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self!r}>")


@irdl_attr_definition
class TF32Type(ParametrizedAttribute, TypeAttribute):
    """f32 with a 10-bit mantissa: the bits of an f32 that a tensor core reads."""

    name = "cuda_tile.tf32"


@irdl_attr_definition
class F8E4M3FNType(ParametrizedAttribute, TypeAttribute):
    name = "cuda_tile.f8E4M3FN"


@irdl_attr_definition
class F8E5M2Type(ParametrizedAttribute, TypeAttribute):
    name = "cuda_tile.f8E5M2"


@irdl_attr_definition
class F8E8M0FNUType(ParametrizedAttribute, TypeAttribute):
    name = "cuda_tile.f8E8M0FNU"


@irdl_attr_definition
class F8E5M3FNUType(ParametrizedAttribute, TypeAttribute):
    """The type of the scales in a product of f4E2M1FN. It has no sign and no infinity; NaN is all ones."""

    name = "cuda_tile.fnv8E5M3FNU"


@irdl_attr_definition
class F4E2M1FNType(ParametrizedAttribute, TypeAttribute):
    name = "cuda_tile.f4E2M1FN"


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """Orders memory operations."""

    name = "cuda_tile.token"


tf32, f8e4m3fn, f8e5m2, f8e8m0fnu, f4e2m1fn = TF32Type(), F8E4M3FNType(), F8E5M2Type(), F8E8M0FNUType(), F4E2M1FNType()
f8e5m3fnu = F8E5M3FNUType()
i4 = IntegerType(4)
token = TokenType()

# Name in text and width in bits of every scalar. In memory and in constants a scalar takes whole bytes (tf32: 3).
SCALARS: dict[Attribute, tuple[str, int]] = {
    i1: ("i1", 1), i4: ("i4", 4), i8: ("i8", 8), i16: ("i16", 16), i32: ("i32", 32), i64: ("i64", 64),
    f16: ("f16", 16), bf16: ("bf16", 16), f32: ("f32", 32), tf32: ("tf32", 19), f64: ("f64", 64),
    f8e4m3fn: ("f8E4M3FN", 8), f8e5m2: ("f8E5M2", 8), f8e8m0fnu: ("f8E8M0FNU", 8), f8e5m3fnu: ("fnv8E5M3FNU", 8),
    f4e2m1fn: ("f4E2M1FN", 4),
}  # fmt: skip
FLOATS = frozenset((f16, bf16, f32, tf32, f64, f8e4m3fn, f8e5m2, f8e8m0fnu, f8e5m3fnu, f4e2m1fn))
INTEGERS = frozenset((i1, i4, i8, i16, i32, i64))
POINTEES = frozenset(SCALARS) - {i4}


PTR_ATTRS = ("none", "unicast", "multicast")  # in the order of their bytecode values


class _Ptr(NamedTuple):
    pointee: Attribute
    ptr_attr: str | None


@irdl_attr_definition
class PtrType(_Opaque, Data[_Ptr], TypeAttribute):
    """A pointer to global memory: `ptr<f32>`. `ptr_attr` says what an address stands for: `multicast` for the same
    place in the memory of several GPUs, `unicast` for one place. Most pointers say nothing, which differs from
    "none" only in the type."""

    name = "cuda_tile.ptr"

    def __init__(self, pointee: Attribute, ptr_attr: str | None = None) -> None:
        super().__init__(_Ptr(pointee, ptr_attr))

    @property
    def pointee(self) -> Attribute:
        return self.data.pointee

    @property
    def ptr_attr(self) -> str | None:
        return self.data.ptr_attr


class _Tile(NamedTuple):
    shape: tuple[int, ...]
    element_type: Attribute


@irdl_attr_definition
class TileType(_Opaque, Data[_Tile], TypeAttribute):
    """A tile of static shape: `tile<128x64xbf16>`, a scalar is `tile<i32>`."""

    name = "cuda_tile.tile"

    def __init__(self, shape: Sequence[int], element_type: Attribute) -> None:
        super().__init__(_Tile(tuple(shape), element_type))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def element_type(self) -> Attribute:
        return self.data.element_type


class _TensorView(NamedTuple):
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element_type: Attribute
    ptr_attr: str | None


@irdl_attr_definition
class TensorViewType(_Opaque, Data[_TensorView], TypeAttribute):
    """An array in global memory: `tensor_view<?x?xbf16, strides=[?,1]>`; strides in elements. `ptr_attr`:
    that of the pointer that it was made from."""

    name = "cuda_tile.tensor_view"

    def __init__(
        self, shape: Sequence[int], strides: Sequence[int], element_type: Attribute, ptr_attr: str | None = None
    ) -> None:
        super().__init__(_TensorView(tuple(shape), tuple(strides), element_type, ptr_attr))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.data.strides

    @property
    def element_type(self) -> Attribute:
        return self.data.element_type

    @property
    def ptr_attr(self) -> str | None:
        return self.data.ptr_attr


PADDINGS = ("zero", "neg_zero", "nan", "pos_inf", "neg_inf")  # in the order of their bytecode values


class _TileView(NamedTuple):
    tile_shape: tuple[int, ...]
    tensor_view: TensorViewType
    dim_map: tuple[int, ...]
    padding_value: str | None
    traversal_strides: tuple[int, ...] = ()
    sparse_dim: int = -1


class TileViewType(_Opaque, Data[_TileView], TypeAttribute):
    """A tensor view cut into tiles, from which tiles are loaded and to which they are stored. If `padding_value` is
    None, elements read outside the array are unspecified."""

    @property
    def tile_shape(self) -> tuple[int, ...]:
        return self.data.tile_shape

    @property
    def tensor_view(self) -> TensorViewType:
        return self.data.tensor_view

    @property
    def padding_value(self) -> str | None:
        return self.data.padding_value

    @property
    def tile(self) -> TileType:
        """The type of one tile of this view."""
        return TileType(self.tile_shape, self.tensor_view.element_type)

    @property
    def index_rank(self) -> int:
        """The number of indices that select a tile."""
        return len(self.tile_shape)


@irdl_attr_definition
class PartitionViewType(TileViewType):
    """Tiles side by side: tile (i, j) starts at (i * tile_shape[0], j * tile_shape[1]).

    `dim_map[d]`: the dimension of the tensor view that tile dimension d runs along.
    """

    name = "cuda_tile.partition_view"

    def __init__(
        self,
        tile_shape: Sequence[int],
        tensor_view: TensorViewType,
        dim_map: Sequence[int] | None = None,
        padding_value: str | None = None,
    ) -> None:
        mapped = range(len(tile_shape)) if dim_map is None else dim_map
        super().__init__(_TileView(tuple(tile_shape), tensor_view, tuple(mapped), padding_value))

    @property
    def dim_map(self) -> tuple[int, ...]:
        return self.data.dim_map


@irdl_attr_definition
class StridedViewType(TileViewType):
    """Like a partition view, but tiles start every `traversal_strides` elements, so that they may overlap."""

    name = "cuda_tile.strided_view"

    def __init__(
        self,
        tile_shape: Sequence[int],
        traversal_strides: Sequence[int],
        tensor_view: TensorViewType,
        dim_map: Sequence[int] | None = None,
        padding_value: str | None = None,
    ) -> None:
        mapped = range(len(tile_shape)) if dim_map is None else dim_map
        super().__init__(
            _TileView(tuple(tile_shape), tensor_view, tuple(mapped), padding_value, tuple(traversal_strides))
        )

    @property
    def dim_map(self) -> tuple[int, ...]:
        return self.data.dim_map

    @property
    def traversal_strides(self) -> tuple[int, ...]:
        return self.data.traversal_strides


@irdl_attr_definition
class GatherScatterViewType(TileViewType):
    """Rows selected one by one: the index along dimension `sparse_dim` is itself a tile of indices."""

    name = "cuda_tile.gather_scatter_view"

    def __init__(
        self, tile_shape: Sequence[int], tensor_view: TensorViewType, sparse_dim: int, padding_value: str | None = None
    ) -> None:
        super().__init__(_TileView(tuple(tile_shape), tensor_view, (), padding_value, (), sparse_dim))

    @property
    def sparse_dim(self) -> int:
        return self.data.sparse_dim


def byte_width(element: Attribute) -> int:
    """Bytes of a scalar in memory and in constants; a pointer takes 8."""
    return 8 if isinstance(element, PtrType) else (SCALARS[element][1] + 7) // 8


def spell(value: Attribute) -> str:
    """A type in Tile IR's text, without the dialect's prefix: `tile<128x64xbf16>`."""
    match value:
        case TokenType():
            return "token"
        case PtrType():
            classified = "" if value.ptr_attr is None else f", <{value.ptr_attr}>"
            return f"ptr<{spell(value.pointee)}{classified}>"
        case TileType():
            return f"tile<{_shape(value.shape)}{spell(value.element_type)}>"
        case TensorViewType():
            strides = f", strides=[{','.join(map(_size, value.strides))}]" if value.shape else ""
            classified = "" if value.ptr_attr is None else f", #cuda_tile.ptr_attr<{value.ptr_attr}>"
            return f"tensor_view<{_shape(value.shape)}{spell(value.element_type)}{strides}{classified}>"
        case TileViewType():
            return _spell_view(value)
        case _:
            return SCALARS[value][0] if value in SCALARS else str(value)


def _size(value: int) -> str:
    return "?" if value == DYNAMIC else str(value)


def _shape(sizes: Sequence[int]) -> str:
    return "".join(f"{_size(size)}x" for size in sizes)


def _spell_view(value: TileViewType) -> str:
    kind = value.name.removeprefix("cuda_tile.")
    parts = [f"tile=({'x'.join(map(str, value.tile_shape))})"]
    if isinstance(value, StridedViewType):
        parts.append(f"traversal_strides=[{','.join(map(str, value.traversal_strides))}]")
    if value.padding_value is not None:
        parts.append(f"padding_value = {value.padding_value}")
    parts.append(spell(value.tensor_view))
    if isinstance(value, GatherScatterViewType):
        parts.append(f"sparse_dim={value.sparse_dim}")
    elif value.data.dim_map != tuple(range(len(value.tile_shape))):
        parts.append(f"dim_map=[{', '.join(map(str, value.data.dim_map))}]")
    return f"{kind}<{', '.join(parts)}>"
