"""Access to operations, types and attributes for the interpreter. Only this module knows the dialect's classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue

from toolchain.errors import UsageError

from ...dialect import types
from ...dialect.attrs import BoundedAttr, DenseAttr, DivByAttr, SameElementsAttr
from ..numbers.elements import ELEMENTS, PACKED, POINTER, Array, Element


@dataclass(frozen=True)
class Tile:
    """A tile type. `pointee_bytes`: if the elements are pointers, the size of the type that they point to."""

    shape: tuple[int, ...]
    element: Element
    pointee_bytes: int = 0


@dataclass(frozen=True)
class TensorType:
    """A tensor view's static sizes in elements; None for a dynamic one."""

    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    element: Element


@dataclass(frozen=True)
class ViewType:
    """A tile view. `steps`: elements per index step; `sparse_dim`: the gathered dimension of a gather/scatter view;
    `packed`: the dimension of the tile along which two elements share a byte."""

    tile: tuple[int, ...]
    steps: tuple[int, ...]
    dim_map: tuple[int, ...]
    element: Element
    padding: str | None
    sparse_dim: int | None = None
    packed: int | None = None


@dataclass(frozen=True)
class DivBy:
    divisor: int
    every: int | None
    along: int | None

    def __str__(self) -> str:
        return f"div_by<{self.divisor}{'' if self.every is None else f', every {self.every} along {self.along}'}>"


@dataclass(frozen=True)
class Bounded:
    low: int | None
    high: int | None

    def __str__(self) -> str:
        return f"bounded<{'?' if self.low is None else self.low}, {'?' if self.high is None else self.high}>"


@dataclass(frozen=True)
class SameElements:
    groups: tuple[int, ...]

    def __str__(self) -> str:
        return f"same_elements<{list(self.groups)}>"


def short_name(op: Operation) -> str:
    return op.name.removeprefix("cuda_tile.")


# Types


def element_of(kind: Attribute) -> Element:
    """The element type of a scalar. Raises UsageError if the interpreter cannot compute with it."""
    if isinstance(kind, types.PtrType):
        return POINTER
    name = types.SCALARS[kind][0]
    if name not in ELEMENTS:
        raise UsageError(f"the interpreter has no tiles of {name}", hint="run this kernel on a GPU")
    return ELEMENTS[name]


def unknown_element(value: SSAValue) -> str | None:
    """The name of a value's element type if the interpreter does not have it there. Of elements that share a byte it
    has tiles, arrays of f4E2M1FN, and views of these that do not gather."""
    kind = value.type
    gathers = isinstance(kind, types.GatherScatterViewType)
    in_memory = not isinstance(kind, types.TileType)
    kind = kind.tensor_view if isinstance(kind, types.TileViewType) else kind
    if not isinstance(kind, types.TileType | types.TensorViewType):
        return None
    element = kind.element_type
    if isinstance(element, types.PtrType):
        element, in_memory = element.pointee, True
    if isinstance(element, types.PtrType) or not in_memory:
        return None
    name = types.SCALARS[element][0]
    if name in PACKED and (gathers or name != "f4E2M1FN"):
        return f"{name} {'gathered in' if gathers else 'in'} memory"
    return None


def counts_halves(op: Operation) -> bool:
    """True if an op makes addresses of elements that share a byte, of which nothing says which half they mean."""
    kinds = (value.type for value in op.results if short_name(op) in ("offset", "alloca", "get_global"))
    pointers = (kind.element_type for kind in kinds if isinstance(kind, types.TileType))
    return any(isinstance(p, types.PtrType) and p.pointee in (types.f4e2m1fn, types.i4) for p in pointers)


def tile_of(value: SSAValue) -> Tile:
    kind = value.type
    assert isinstance(kind, types.TileType), f"{kind} is not a tile"
    inner = kind.element_type
    size = element_of(inner.pointee).storage.itemsize if isinstance(inner, types.PtrType) else 0
    return Tile(kind.shape, element_of(inner), size)


def element_of_pointer(value: SSAValue) -> Element:
    """The element type that the pointers of a tile point to."""
    kind = value.type
    assert isinstance(kind, types.TileType) and isinstance(kind.element_type, types.PtrType)
    return element_of(kind.element_type.pointee)


def is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, types.TileType)


def is_token(value: SSAValue) -> bool:
    return isinstance(value.type, types.TokenType)


def is_view(value: SSAValue) -> bool:
    return isinstance(value.type, types.TensorViewType | types.TileViewType)


def tensor_type(value: SSAValue) -> TensorType:
    kind = value.type
    assert isinstance(kind, types.TensorViewType)

    def static(sizes: tuple[int, ...]) -> tuple[int | None, ...]:
        return tuple(None if n == types.DYNAMIC else n for n in sizes)

    return TensorType(static(kind.shape), static(kind.strides), element_of(kind.element_type))


def view_type(value: SSAValue) -> ViewType:
    kind = value.type
    assert isinstance(kind, types.TileViewType)
    tile = kind.tile_shape
    element = element_of(kind.tensor_view.element_type)
    plain = tuple(range(len(tile)))
    if isinstance(kind, types.GatherScatterViewType):
        return ViewType(tile, (1,) * len(tile), plain, element, kind.padding_value, kind.sparse_dim)
    assert isinstance(kind, types.PartitionViewType | types.StridedViewType)
    steps = kind.traversal_strides if isinstance(kind, types.StridedViewType) else tile
    packed = kind.dim_map.index(kind.tensor_view.strides.index(1)) if element.name in PACKED else None
    return ViewType(tile, steps, kind.dim_map, element, kind.padding_value, packed=packed)


# Attributes


def enum(op: Operation, name: str) -> str:
    """The value of an enumeration, as its word in the text form."""
    return str(getattr(op, name).data.value)


def flag(op: Operation, name: str) -> bool:
    """True if a flag is set; False for an op without that flag."""
    value = getattr(op, name, None)
    return isinstance(value, UnitAttr) or bool(getattr(value, "data", False))


def integer(op: Operation, name: str) -> int:
    return int(getattr(op, name).data)


def integers(op: Operation, name: str) -> tuple[int, ...]:
    return tuple(getattr(op, name).data)


def booleans(op: Operation, name: str) -> tuple[bool, ...]:
    """One boolean for each operand of a group; () if all are false."""
    value = getattr(op, name)
    return () if value is None else tuple(value.data)


def text(op: Operation, name: str) -> str:
    return str(getattr(op, name).data)


def assumption(op: Any) -> DivBy | Bounded | SameElements:
    """The predicate of an `assume`."""
    predicate = op.predicate
    if isinstance(predicate, DivByAttr):
        return DivBy(predicate.divisor, predicate.every, predicate.along)
    if isinstance(predicate, BoundedAttr):
        return Bounded(predicate.lb, predicate.ub)
    assert isinstance(predicate, SameElementsAttr)
    return SameElements(predicate.data)


def constant_array(op: Any) -> Array:
    """The value of a `constant` or `global` in compute dtype. A splat has extent 1 in every dimension."""
    value = op.value
    assert isinstance(value, DenseAttr)
    shape, element = value.type.shape, element_of(value.type.element_type)
    raw = np.frombuffer(value.raw, np.uint8)
    if element.name == "i1":
        count = int(np.prod(shape))
        bits = raw & 1 != 0 if value.is_splat else np.unpackbits(raw, bitorder="little")[:count] != 0
        return bits.reshape((1,) * len(shape) if bits.size == 1 else shape)
    if element.name == "tf32":  # three bytes: the top 19 bits of an f32
        words = np.zeros((raw.size // 3, 4), np.uint8)
        words[:, :3] = raw.reshape(-1, 3)
        stored = (words.view("<u4") << 13).view(np.float32)
    else:
        stored = raw.view(element.storage)
    return element.decode(stored.reshape((1,) * len(shape) if value.is_splat else shape))


# Modules


def entries(module: Operation) -> Iterator[tuple[str, Region]]:
    """The symbol and the body of every entry."""
    for op in module.regions[0].block.ops:
        if short_name(op) == "entry":
            yield text(op, "sym_name"), op.regions[0]


def globals_(module: Operation) -> Iterator[tuple[str, Array]]:
    """Name and initial memory of every global."""
    for op in module.regions[0].block.ops:
        if short_name(op) == "global":
            value: Any = op.value  # pyright: ignore[reportAttributeAccessIssue]
            shape, element = value.type.shape, element_of(value.type.element_type)
            yield text(op, "sym_name"), np.array(np.broadcast_to(element.encode(constant_array(op)), shape))


def may_be_unspecified(op: Any) -> bool:
    """True if an op itself can give unspecified elements: a load without padding, or an atomic with a mask."""
    name = short_name(op)
    if name in ("load_view_tko", "multimem_load_reduce_view_tko"):
        return view_type(op.view).padding is None
    if name == "load_ptr_tko":
        return op.mask is not None and op.paddingValue is None
    return name == "atomic_rmw_tko" and op.mask is not None


def reads_memory(op: Operation) -> bool:
    """True if an op's first result comes from memory that the kernel may have written."""
    return short_name(op) in (
        "load_view_tko", "load_ptr_tko", "atomic_rmw_tko", "atomic_cas_tko", "multimem_load_reduce_view_tko",
    )  # fmt: skip


def stored(op: Any) -> SSAValue | None:
    """The tile that an op stores; None if it is no store."""
    name = short_name(op)
    return (
        op.tile
        if name in ("store_view_tko", "multimem_store_view_tko")
        else op.value
        if name == "store_ptr_tko"
        else None
    )


def is_stride(op: Any, index: int) -> bool:
    """True if operand `index` of an op is a stride of the tensor view that it makes."""
    return short_name(op) == "make_tensor_view" and index >= len(op.operands) - len(op.dynamicStrides)
