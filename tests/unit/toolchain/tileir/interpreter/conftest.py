"""Small kernels built op by op, and a way to run one op on arrays, as a tile and as scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import FunctionType, UnitAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from toolchain.errors import SanitizerError
from toolchain.tileir import location
from toolchain.tileir.dialect import attrs, ops, types
from toolchain.tileir.interpreter import Allocation, Argument, Grid, Pointer, Prepared

Array = np.ndarray[Any, np.dtype[Any]]
ENUMS: dict[str, tuple[type[Any], type[Any]]] = {
    "rounding_mode": (attrs.RoundingModeAttr, attrs.RoundingMode),
    "rounding": (attrs.RoundingModeAttr, attrs.RoundingMode),
    "overflow": (attrs.IntegerOverflowAttr, attrs.IntegerOverflow),
    "signedness": (attrs.SignednessAttr, attrs.Signedness),
    "signedness_lhs": (attrs.SignednessAttr, attrs.Signedness),
    "signedness_rhs": (attrs.SignednessAttr, attrs.Signedness),
    "comparison_predicate": (attrs.ComparisonPredicateAttr, attrs.ComparisonPredicate),
    "comparison_ordering": (attrs.ComparisonOrderingAttr, attrs.ComparisonOrdering),
    "memory_ordering_semantics": (attrs.MemoryOrderingAttr, attrs.MemoryOrdering),
    "memory_scope": (attrs.MemoryScopeAttr, attrs.MemoryScope),
    "mode": (attrs.AtomicModeAttr, attrs.AtomicMode),
}
PLAIN: dict[type, type[Any]] = {int: attrs.IntAttr, bool: attrs.BoolAttr, str: attrs.StrAttr, tuple: attrs.IntsAttr}
WEAK = {"memory_ordering_semantics": "weak"}


def attribute(name: str, value: Any) -> Attribute:
    """`rounding="zero"` and the like as the dialect's attribute."""
    if isinstance(value, Attribute):
        return value
    if name in ENUMS:
        wrap, enum = ENUMS[name]
        return wrap(enum(value))
    return UnitAttr() if value is None else PLAIN[type(value)](value)


def tile(shape: Sequence[int], element: Attribute) -> types.TileType:
    return types.TileType(tuple(shape), element)


class Builder:
    """One entry `k` under construction. Parameters are scalar types (pointers included)."""

    def __init__(self, *parameters: Attribute) -> None:
        self.block = Block(arg_types=[tile((), p) for p in parameters])
        self.entry = self.block
        self.parameters = parameters
        self.line = 0
        self.globals: list[ops.GlobalOp] = []

    @property
    def args(self) -> Sequence[SSAValue]:
        return self.entry.args

    def op(
        self, name: str, *operands: Any, out: Sequence[Any] = (), regions: Sequence[Region] = (), **fields: Any
    ) -> Any:
        """Append an op; its results (one: itself). Line n of kernel.mlir is where the n-th op comes from."""
        properties = {k: attribute(k, v) for k, v in fields.items()}
        made = ops.OPS[name].build(
            operands=list(operands), result_types=list(out), properties=properties, regions=list(regions)
        )
        self.line += 1
        location.set(made, location.Location("kernel.mlir", self.line, 3))
        self.block.add_op(made)
        return made.results[0] if len(made.results) == 1 else tuple(made.results)

    def constant(self, values: Any, element: Attribute, shape: Sequence[int] | None = None) -> SSAValue:
        """A constant tile from numpy values; a single value with a larger `shape` is a splat."""
        array = np.asarray(values)
        kind = tile(array.shape if shape is None else shape, element)
        if element == types.i1:
            raw = (
                np.packbits(array.reshape(-1), bitorder="little").tobytes()
                if array.ndim
                else (b"\xff" if array else b"\0")
            )
        else:
            raw = array.tobytes()
        return self.op("constant", out=[kind], value=attrs.DenseAttr(raw, kind))

    def i32(self, value: int) -> SSAValue:
        return self.constant(np.int32(value), types.i32)

    def region(self, arguments: Sequence[Attribute], body: Callable[..., None]) -> Region:
        """A region whose block `body(*arguments)` fills."""
        outer, self.block = self.block, Block(arg_types=list(arguments))
        inner = self.block
        body(*inner.args)
        self.block = outer
        return Region(inner)

    def block_id(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        return self.op("get_tile_block_id", out=[tile((), types.i32)] * 3)

    def view(
        self, pointer: SSAValue, shape: Sequence[int], tile_shape: Sequence[int], *, padding: str | None = "zero",
        strides: Sequence[int] | None = None, dim_map: Sequence[int] | None = None,
    ) -> SSAValue:  # fmt: skip
        """A partition view of a static row-major tensor."""
        pointee = pointer.type.element_type.pointee
        steps = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))] if strides is None else strides
        tensor = types.TensorViewType(shape, steps, pointee)
        base = self.op("make_tensor_view", pointer, [], [], out=[tensor])
        kind = types.PartitionViewType(tile_shape, tensor, dim_map, padding)
        return self.op("make_partition_view", base, out=[kind])

    def load(self, view: SSAValue, *index: Any, token: SSAValue | None = None) -> Any:
        """(tile, token) of a weak load."""
        return self.op(
            "load_view_tko", view, [self.index(i) for i in index], [token] if token else [],
            out=[view.type.tile, types.token], **WEAK,
        )  # fmt: skip

    def store(self, view: SSAValue, value: SSAValue, *index: Any, token: SSAValue | None = None) -> Any:
        return self.op(
            "store_view_tko", value, view, [self.index(i) for i in index], [token] if token else [],
            out=[types.token], **WEAK,
        )  # fmt: skip

    def index(self, value: Any) -> SSAValue:
        return self.i32(value) if isinstance(value, int) else value

    def load_pointer(self, pointer: SSAValue, mask: Any = None, padding: Any = None, token: Any = None) -> Any:
        kind = tile(pointer.type.shape, pointer.type.element_type.pointee)
        optional = [[x] if x is not None else [] for x in (mask, padding, token)]
        return self.op("load_ptr_tko", pointer, *optional, out=[kind, types.token], **WEAK)

    def store_pointer(self, pointer: SSAValue, value: SSAValue, mask: Any = None, token: Any = None) -> Any:
        optional = [[x] if x is not None else [] for x in (mask, token)]
        return self.op("store_ptr_tko", pointer, value, *optional, out=[types.token], **WEAK)

    def spread(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A scalar as a tile of `shape`."""
        element = value.type.element_type
        ones = self.op("reshape", value, out=[tile([1] * len(shape), element)])
        return self.op("broadcast", ones, out=[tile(shape, element)])

    def prepare(self) -> Prepared:
        self.op("return", [])
        kind = FunctionType.from_lists([a.type for a in self.entry.args], [])
        entry = ops.EntryOp.build(
            properties={"sym_name": attrs.StrAttr("k"), "function_type": kind}, regions=[Region(self.entry)]
        )
        body = Region(Block([*self.globals, entry]))
        return Prepared(ops.ModuleOp.build(properties={"sym_name": attrs.StrAttr("m")}, regions=[body]))

    def run(self, *args: Array | int | float, grid: Grid = (1, 1, 1), sanitize: bool = True) -> None:
        self.prepare().launch("k", arguments(*args), grid, sanitize)


def arguments(*args: Array | int | float) -> list[Argument]:
    """Arrays become pointers to their own allocation."""
    return [Pointer(Allocation(a)) if isinstance(a, np.ndarray) else a for a in args]


ELEMENT_OF = {
    "bool": types.i1, "int8": types.i8, "int16": types.i16, "int32": types.i32, "int64": types.i64,
    "float16": types.f16, "bfloat16": types.bf16, "float32": types.f32, "float64": types.f64,
    "float8_e4m3fn": types.f8e4m3fn, "float8_e5m2": types.f8e5m2,
    "float8_e8m0fnu": types.f8e8m0fnu,
}  # fmt: skip


def apply(name: str, *inputs: Array, dtype: Any = None, sanitize: bool = True, **fields: Any) -> Array:
    """One element-wise op on rank-1 arrays (a power of two long). Run as a tile and, block by block, as scalars: both
    must give the same bits. `dtype` of the result, if not that of the first input."""
    out = np.zeros(inputs[0].shape, inputs[0].dtype if dtype is None else dtype)
    elements = [ELEMENT_OF[a.dtype.name] for a in inputs]
    result = ELEMENT_OF[out.dtype.name]
    n = out.size

    tiles = Builder(*(types.PtrType(e) for e in (*elements, result)))
    loaded = [tiles.load(tiles.view(p, (n,), (n,)), 0)[0] for p in tiles.args[:-1]]
    tiles.store(tiles.view(tiles.args[-1], (n,), (n,)), tiles.op(name, *loaded, out=[tile((n,), result)], **fields), 0)
    tiles.run(*inputs, out, sanitize=sanitize)

    scalars = Builder(*(types.PtrType(e) for e in (*elements, result)))
    x = scalars.block_id()[0]
    places = [scalars.op("offset", p, x, out=[p.type]) for p in scalars.args]
    values = [scalars.load_pointer(p)[0] for p in places[:-1]]
    scalars.store_pointer(places[-1], scalars.op(name, *values, out=[tile((), result)], **fields))
    one_by_one = np.zeros_like(out)
    scalars.run(*inputs, one_by_one, grid=(n, 1, 1), sanitize=sanitize)
    bits = f"u{out.dtype.itemsize}"
    differ = out.view(bits) != one_by_one.view(bits)
    assert not differ.any(), f"{name}: tile {out[differ]} != scalar {one_by_one[differ]}"
    return out


def expect_trap(
    k: Any, message: str, *args: Any, grid: tuple[int, int, int] = (1, 1, 1), runs_unchecked: bool = True
) -> str:
    """The kernel traps, with its entry and a location; without sanitizing it runs."""
    prepared = k.prepare()

    def bound() -> list[Any]:
        return [Pointer(Allocation(a.copy())) if isinstance(a, np.ndarray) else a for a in args]

    with pytest.raises(SanitizerError, match=message) as caught:
        prepared.launch("k", bound(), grid)
    assert str(caught.value).startswith("k: ") and "kernel.mlir:" in str(caught.value)
    if runs_unchecked:
        prepared.launch("k", bound(), grid, sanitize=False)
    return str(caught.value)


@pytest.fixture
def builder() -> type[Builder]:
    return Builder


@pytest.fixture
def elementwise() -> Callable[..., Array]:
    return apply


@pytest.fixture
def trapped() -> Callable[..., str]:
    return expect_trap
