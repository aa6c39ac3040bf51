"""Types and attributes in bytecode: one table for both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute

from ..dialect import types as t
from ..dialect.attrs import (
    AtomicMode,
    AtomicModeAttr,
    ComparisonOrdering,
    ComparisonOrderingAttr,
    ComparisonPredicate,
    ComparisonPredicateAttr,
    IntegerOverflow,
    IntegerOverflowAttr,
    MemoryOrdering,
    MemoryOrderingAttr,
    MemoryScope,
    MemoryScopeAttr,
    MultimemReduction,
    MultimemReductionAttr,
    RoundingMode,
    RoundingModeAttr,
    Signedness,
    SignednessAttr,
)
from ..dialect.base import V13_2, V13_3, V13_4, V13_5, Version
from .encoding import Reader, ints, varint

SIMPLE: dict[int, Attribute] = {
    0x00: t.i1, 0x01: t.i8, 0x02: t.i16, 0x03: t.i32, 0x04: t.i64, 0x05: t.f16, 0x06: t.bf16, 0x07: t.f32,
    0x08: t.tf32, 0x09: t.f64, 0x0A: t.f8e4m3fn, 0x0B: t.f8e5m2, 0x11: t.token, 0x12: t.f8e8m0fnu,
    0x13: t.f4e2m1fn, 0x16: t.i4, 0x82: t.f8e5m3fnu,
}  # fmt: skip
SIMPLE_TAGS = {value: tag for tag, value in SIMPLE.items()}
SINCE: dict[int, Version] = {0x12: V13_2, 0x13: V13_3, 0x14: V13_3, 0x15: V13_3, 0x16: V13_3, 0x82: V13_4}
POINTER, TILE, TENSOR_VIEW, PARTITION_VIEW, FUNCTION, GATHER_SCATTER_VIEW, STRIDED_VIEW = (
    0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x14, 0x15,
)  # fmt: skip

# Each enumeration attribute's values in the order of their bytes.
ENUMS: dict[type[Attribute], list[Any]] = {
    RoundingModeAttr: [RoundingModeAttr(v) for v in RoundingMode],
    IntegerOverflowAttr: [IntegerOverflowAttr(v) for v in IntegerOverflow],
    SignednessAttr: [SignednessAttr(v) for v in Signedness],
    ComparisonPredicateAttr: [ComparisonPredicateAttr(v) for v in ComparisonPredicate],
    ComparisonOrderingAttr: [ComparisonOrderingAttr(v) for v in ComparisonOrdering],
    MemoryOrderingAttr: [MemoryOrderingAttr(v) for v in MemoryOrdering],
    MemoryScopeAttr: [MemoryScopeAttr(v) for v in MemoryScope],
    AtomicModeAttr: [AtomicModeAttr(v) for v in AtomicMode],
    MultimemReductionAttr: [MultimemReductionAttr(v) for v in MultimemReduction],
}
ENUM_BYTES: dict[Attribute, int] = {value: i for values in ENUMS.values() for i, value in enumerate(values)}

PTR_ATTR_SINCE: dict[str, Version] = dict(zip(t.PTR_ATTRS, (V13_4, V13_5, V13_5), strict=True))
ENUM_SINCE: dict[Attribute, Version] = {RoundingModeAttr(RoundingMode.NEAREST_AWAY): V13_4}


def read_type(item: Reader, known: Sequence[Attribute], version: Version) -> Attribute:
    """One item of the type table. It may only refer to types before it (`known`)."""
    tag = item.varint()
    if SINCE.get(tag, version) > version:
        raise item.fail(f"type {tag:#x} does not exist in bytecode {version[0]}.{version[1]}, only in later versions")
    if tag in SIMPLE:
        return SIMPLE[tag]

    def earlier(*kinds: type[Attribute]) -> Any:
        at = item.at
        index = item.varint()
        if index >= len(known):
            raise item.fail(f"refers to type {index}, but only {len(known)} precede it", at)
        if kinds and not isinstance(known[index], kinds):
            raise item.fail(f"refers to type {index} ({t.spell(known[index])}), which does not fit here", at)
        return known[index]

    def scalar() -> Attribute:
        at = item.at
        found = earlier()
        if found not in t.SCALARS and not isinstance(found, t.PtrType):
            raise item.fail(f"{t.spell(found)} is not an element type", at)
        return found

    def value() -> Attribute:
        at = item.at
        found = earlier()
        if isinstance(found, FunctionType):
            raise item.fail("a function type as a parameter or result of a function type", at)
        return found

    match tag:
        case _ if tag == POINTER:
            classified = version >= V13_4 and _flag(item)
            at = item.at
            pointee = earlier()
            if pointee not in t.POINTEES:
                raise item.fail(f"a pointer cannot point to {t.spell(pointee)}", at)
            return t.PtrType(pointee, _read_ptr_attr(item, version) if classified else None)
        case _ if tag == TILE:
            element = scalar()
            return t.TileType(_sizes(item, item.ints(8, "sizes"), dynamic=False), element)
        case _ if tag == TENSOR_VIEW:
            classified = version >= V13_4 and _flag(item)
            element = scalar()
            shape = _sizes(item, item.ints(8, "sizes"), dynamic=True)
            strides = _sizes(item, item.ints(8, "strides"), dynamic=True)
            if len(shape) != len(strides):
                raise item.fail(f"{len(shape)} sizes but {len(strides)} strides")
            return t.TensorViewType(shape, strides, element, _read_ptr_attr(item, version) if classified else None)
        case _ if tag == FUNCTION:
            inputs = [value() for _ in range(item.count("parameters"))]
            return FunctionType.from_lists(inputs, [value() for _ in range(item.count("results"))])
        case _ if tag in (PARTITION_VIEW, STRIDED_VIEW, GATHER_SCATTER_VIEW):
            return _read_view(item, tag, version, earlier)
        case _:
            raise item.fail(f"no type has tag {tag:#x}")


def _flag(item: Reader) -> bool:
    """Whether a `ptr_attr` follows, which since 13.4 a pointer or tensor view may have."""
    flags = item.varint()
    if flags > 1:
        raise item.fail(f"unknown flags {flags:#x}", item.at - 1)
    return bool(flags)


def _read_ptr_attr(item: Reader, version: Version) -> str:
    return _one_of(item, [name for name in t.PTR_ATTRS if PTR_ATTR_SINCE[name] <= version], "ptr_attr")


def _read_view(item: Reader, tag: int, version: Version, earlier: Callable[..., Any]) -> t.TileViewType:
    padded = item.varint() if version >= V13_3 else 0
    tile = _sizes(item, item.ints(4, "sizes"), dynamic=False)
    strides = item.ints(4, "strides") if tag == STRIDED_VIEW else ()
    tensor: t.TensorViewType = earlier(t.TensorViewType)
    dim_map = () if tag == GATHER_SCATTER_VIEW else item.ints(4, "dimensions")
    sparse = item.varint() if tag == GATHER_SCATTER_VIEW else 0
    if version < V13_3:
        padded = item.varint()
    padding = _one_of(item, t.PADDINGS, "padding value") if padded else None
    if tag == GATHER_SCATTER_VIEW:
        return t.GatherScatterViewType(tile, tensor, sparse, padding)
    if sorted(dim_map) != list(range(len(tensor.shape))) or len(tile) != len(dim_map):
        raise item.fail(f"dimension map {list(dim_map)} does not fit a tile of rank {len(tile)} of {t.spell(tensor)}")
    if tag == STRIDED_VIEW:
        if len(strides) != len(tile):
            raise item.fail(f"{len(strides)} traversal strides for a tile of rank {len(tile)}")
        return t.StridedViewType(tile, strides, tensor, dim_map, padding)
    return t.PartitionViewType(tile, tensor, dim_map, padding)


def _sizes(item: Reader, values: tuple[int, ...], *, dynamic: bool) -> tuple[int, ...]:
    for value in values:
        if value <= 0 and not (dynamic and value == t.DYNAMIC):
            raise item.fail(f"a size or stride cannot be {value}")
    return values


def _one_of(item: Reader, names: Sequence[Any], what: str) -> Any:
    value = item.byte()
    if value >= len(names):
        raise item.fail(f"{value} is not a valid {what}", item.at - 1)
    return names[value]


def read_enum(reader: Reader, kind: type[Attribute], version: Version) -> Attribute:
    known = [value for value in ENUMS[kind] if ENUM_SINCE.get(value, version) <= version]
    return _one_of(reader, known, getattr(kind, "name", "value"))


def write_type(value: Attribute, index: Callable[[Attribute], int], version: Version) -> bytes:
    """An item of the type table. `index` gives the index of a type that it refers to, and adds it if it is new."""
    classified = value.ptr_attr if isinstance(value, t.PtrType | t.TensorViewType) else None
    flag = varint(int(classified is not None)) if version >= V13_4 else b""
    ptr_attr = b"" if classified is None else bytes((t.PTR_ATTRS.index(classified),))
    match value:
        case t.PtrType():
            return varint(POINTER) + flag + varint(index(value.pointee)) + ptr_attr
        case t.TileType():
            return varint(TILE) + varint(index(value.element_type)) + ints(value.shape, 8)
        case t.TensorViewType():
            element = varint(index(value.element_type))
            return varint(TENSOR_VIEW) + flag + element + ints(value.shape, 8) + ints(value.strides, 8) + ptr_attr
        case FunctionType():
            groups = ([index(x) for x in group.data] for group in (value.inputs, value.outputs))
            lists = (varint(len(group)) + b"".join(map(varint, group)) for group in groups)
            return varint(FUNCTION) + b"".join(lists)
        case t.TileViewType():
            return _write_view(value, index, version)
        case _:
            return varint(SIMPLE_TAGS[value])


def _write_view(value: t.TileViewType, index: Callable[[Attribute], int], version: Version) -> bytes:
    padding = b"" if value.padding_value is None else bytes((t.PADDINGS.index(value.padding_value),))
    flag = varint(int(bool(padding)))
    tile, tensor = ints(value.tile_shape, 4), varint(index(value.tensor_view))
    match value:
        case t.GatherScatterViewType():
            return varint(GATHER_SCATTER_VIEW) + flag + tile + tensor + varint(value.sparse_dim) + padding
        case t.StridedViewType():
            strides, dim_map = ints(value.traversal_strides, 4), ints(value.dim_map, 4)
            return varint(STRIDED_VIEW) + flag + tile + strides + tensor + dim_map + padding
        case t.PartitionViewType():
            dim_map = ints(value.dim_map, 4)
            if version >= V13_3:
                return varint(PARTITION_VIEW) + flag + tile + tensor + dim_map + padding
            return varint(PARTITION_VIEW) + tile + tensor + dim_map + flag + padding
        case _:
            raise TypeError(f"no bytecode for {type(value).__name__}")


def type_since(value: Attribute) -> Version:
    """The first bytecode version that has a type."""
    match value:
        case t.PtrType() | t.TensorViewType() if value.ptr_attr is not None:
            return PTR_ATTR_SINCE[value.ptr_attr]
        case t.GatherScatterViewType():
            tag = GATHER_SCATTER_VIEW
        case t.StridedViewType():
            tag = STRIDED_VIEW
        case _:
            tag = SIMPLE_TAGS.get(value, TILE)
    return SINCE.get(tag, (13, 1))
