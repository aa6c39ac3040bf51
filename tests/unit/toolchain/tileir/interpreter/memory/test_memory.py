"""Loads and stores: views and their padding, pointers and masks, atomics."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from toolchain.errors import SanitizerError, UsageError
from toolchain.tileir.dialect import types
from toolchain.tileir.interpreter import Allocation, Pointer

F32, I32, I1 = types.f32, types.i32, types.i1
FLOATS, INTS = types.PtrType(F32), types.PtrType(I32)
X = np.arange(35, dtype=np.float32).reshape(5, 7)


def tile(shape: tuple[int, ...], element: Any = F32) -> types.TileType:
    return types.TileType(shape, element)


@pytest.mark.parametrize(
    ("padding", "value"),
    [("zero", 0.0), ("neg_zero", -0.0), ("nan", np.nan), ("pos_inf", np.inf), ("neg_inf", -np.inf)],
)
def test_edge_tiles_are_padded_on_load_and_clipped_on_store(builder: Any, padding: str, value: float) -> None:
    k = builder(FLOATS, FLOATS, FLOATS)
    x, y, _ = k.block_id()
    loaded = k.load(k.view(k.args[0], (5, 7), (4, 4), padding=padding), x, y)[0]
    k.store(k.view(k.args[1], (8, 8), (4, 4)), loaded, x, y)
    k.store(k.view(k.args[2], (5, 7), (4, 4)), loaded, x, y)
    padded, clipped = np.full((8, 8), 99, np.float32), np.full((5, 7), 99, np.float32)
    k.run(X, padded, clipped, grid=(2, 2, 1))
    assert np.array_equal(clipped, X)
    expected = np.full((8, 8), value, np.float32)
    expected[:5, :7] = X
    assert np.array_equal(padded.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("index", [-1, 3, 2**31 - 1, -(2**31)])
def test_a_tile_outside_the_tensor_is_all_padding(builder: Any, index: int) -> None:
    k = builder(FLOATS, FLOATS)
    loaded = k.load(k.view(k.args[0], (5, 7), (4, 4)), index, 0)[0]
    k.store(k.view(k.args[1], (4, 4), (4, 4)), loaded, 0, 0)
    k.store(k.view(k.args[1], (4, 4), (4, 4)), loaded, index, 0)
    out = np.full((4, 4), 9, np.float32)
    k.run(X, out)
    assert not out.any()


def test_a_dimension_map_turns_tile_and_index_around(builder: Any) -> None:
    k = builder(FLOATS, FLOATS)
    loaded = k.load(k.view(k.args[0], (5, 7), (4, 2), dim_map=(1, 0)), 1, 0)[0]
    k.store(k.view(k.args[1], (4, 2), (4, 2)), loaded, 0, 0)
    out = np.zeros((4, 2), np.float32)
    k.run(X, out)
    expected = np.zeros((4, 2), np.float32)
    expected[:3] = X.T[4:7, 0:2]
    assert np.array_equal(out, expected)


def test_strides_and_dynamic_sizes(builder: Any) -> None:
    """A column-major view, its sizes arguments."""
    k = builder(FLOATS, FLOATS, I32, I32, I32)
    dynamic = types.TensorViewType((types.DYNAMIC, types.DYNAMIC), (1, types.DYNAMIC), F32)
    tensor = k.op("make_tensor_view", k.args[0], list(k.args[2:4]), [k.args[4]], out=[dynamic])
    view = k.op("make_partition_view", tensor, out=[types.PartitionViewType((8, 4), dynamic, None, "zero")])
    k.store(k.view(k.args[1], (8, 4), (8, 4)), k.load(view, 0, 0)[0], 0, 0)
    sizes = k.op("get_tensor_shape", tensor, out=[[tile((), I32)] * 2])
    tiles = k.op("get_index_space_shape", view, out=[[tile((), I32)] * 2])
    k.op(
        "assert",
        k.op("cmpi", sizes[0], k.i32(7), out=[tile((), I1)], comparison_predicate="equal", signedness="signed"),
        message="size",
    )
    k.op(
        "assert",
        k.op("cmpi", tiles[1], k.i32(2), out=[tile((), I1)], comparison_predicate="equal", signedness="signed"),
        message="tiles",
    )
    out = np.zeros((8, 4), np.float32)
    k.run(X, out, 7, 5, 7)
    expected = np.zeros((8, 4), np.float32)
    expected[:7] = X.T[:, :4]
    assert np.array_equal(out, expected)


def test_tiles_of_a_strided_view_overlap(builder: Any) -> None:
    k = builder(FLOATS, FLOATS)
    tensor = types.TensorViewType((5, 7), (7, 1), F32)
    base = k.op("make_tensor_view", k.args[0], [], [], out=[tensor])
    view = k.op("make_strided_view", base, out=[types.StridedViewType((2, 4), (3, 2), tensor, None, "zero")])
    k.store(k.view(k.args[1], (2, 4), (2, 4)), k.load(view, 1, 2)[0], 0, 0)
    out = np.zeros((2, 4), np.float32)
    k.run(X, out)
    assert np.array_equal(out[:, :3], X[3:5, 4:7]) and not out[:, 3].any()


def test_gather_and_scatter_rows(builder: Any) -> None:
    k = builder(FLOATS, FLOATS)
    tensor = types.TensorViewType((5, 7), (7, 1), F32)
    kind = types.GatherScatterViewType((4, 2), tensor, 0, "neg_inf")
    rows = k.constant(np.array([3, 0, 9, 3], np.int32), I32)
    views = [
        k.op("make_gather_scatter_view", k.op("make_tensor_view", p, [], [], out=[tensor]), out=[kind]) for p in k.args
    ]
    loaded = k.load(views[0], rows, 3)[0]
    k.store(views[1], loaded, k.constant(np.array([1, 2, 4, 9], np.int32), I32), 6)
    out = np.zeros((5, 7), np.float32)
    k.run(X, out)
    expected = np.zeros((5, 7), np.float32)
    expected[[1, 2, 4], 6] = [X[3, 3], X[0, 3], -np.inf]
    assert np.array_equal(out, expected)


def addresses(k: Any, pointer: Any, offsets: np.ndarray) -> Any:
    spread = k.spread(pointer, offsets.shape)
    return k.op("offset", spread, k.constant(offsets.astype(np.int32), I32), out=[spread.type])


def test_masked_pointers(builder: Any) -> None:
    """Addresses under a false mask may be anything."""
    k = builder(INTS, INTS)
    offsets = np.array([0, 3, 1000, 1], np.int32)
    mask = k.constant(np.array([True, True, False, True]), I1)
    padding = k.constant(np.array([7, 7, 8, 7], np.int32), I32)
    loaded = k.load_pointer(addresses(k, k.args[0], offsets), mask, padding)[0]
    k.store_pointer(addresses(k, k.args[1], np.arange(4)), loaded)
    k.store_pointer(addresses(k, k.args[1], offsets + 4), loaded, mask)
    out = np.zeros(8, np.int32)
    k.run(np.array([10, 11, 12, 13], np.int32), out)
    assert out.tolist() == [10, 13, 8, 11, 10, 11, 0, 13]


def test_booleans_take_a_byte_in_memory(builder: Any) -> None:
    pointer = types.PtrType(I1)
    k = builder(pointer, pointer)
    loaded = k.load(k.view(k.args[0], (4,), (4,)), 0)[0]
    k.store(k.view(k.args[1], (4,), (4,)), loaded, 0)
    out = np.full(4, 77, np.uint8)
    k.run(np.array([0, 1, 2, 255], np.uint8), out)
    assert out.tolist() == [0, 1, 1, 1]


def test_pointers_as_integers(builder: Any) -> None:
    k = builder(INTS, INTS)
    i64 = tile((), types.i64)
    moved = k.op(
        "addi", k.op("ptr_to_int", k.args[0], out=[i64]), k.constant(np.int64(8), types.i64), out=[i64], overflow="none"
    )
    k.store_pointer(k.args[1], k.load_pointer(k.op("int_to_ptr", moved, out=[k.args[0].type]))[0])
    out = np.zeros(1, np.int32)
    k.run(np.array([5, 6, 7], np.int32), out)
    assert out[0] == 7


def test_a_pointer_into_the_middle_of_an_allocation(builder: Any) -> None:
    k = builder(INTS)
    k.store_pointer(k.args[0], k.i32(5))
    out = np.zeros(4, np.int32)
    k.prepare().launch("k", [Pointer(Allocation(out), 8)], (1, 1, 1))
    assert out.tolist() == [0, 0, 5, 0]


@pytest.mark.parametrize("shape", [(), (2,)])
def test_addresses_wrap_around(builder: Any, shape: tuple[int, ...]) -> None:
    """2^62 elements of four bytes further on is the same address again."""
    k = builder(INTS, types.i64)
    places, far = (k.spread(v, shape) if shape else v for v in k.args)
    moved = k.op("offset", places, far, out=[places.type])
    mask = k.constant(np.array([True, False]), I1) if shape else None
    k.store_pointer(moved, k.constant(np.int32(5), I32, shape), mask)
    prepared, out = k.prepare(), np.zeros(2, np.int32)
    prepared.launch("k", [Pointer(Allocation(out)), 2**62], (1, 1, 1))
    assert out.tolist() == [5, 0]
    with pytest.raises(SanitizerError, match="does not belong to any allocation"):
        prepared.launch("k", [Pointer(Allocation(out)), 2**61], (1, 1, 1))


def test_local_memory_is_fresh_for_each_block(builder: Any) -> None:
    k = builder(INTS)
    x = k.block_id()[0]
    local = k.op("alloca", out=[k.args[0].type], num_elem=2, alignment=4)
    token = k.store_pointer(local, x)
    value = k.load_pointer(local, token=token)[0]
    k.store_pointer(k.op("offset", k.args[0], x, out=[k.args[0].type]), value)
    out = np.zeros(3, np.int32)
    k.run(out, grid=(3, 1, 1))
    assert out.tolist() == [0, 1, 2]


ATOMIC = {"memory_ordering_semantics": "relaxed", "memory_scope": "device"}


@pytest.mark.parametrize(
    ("mode", "after"),
    [("add", 6), ("and", 4 & 3 & -1), ("or", 4 | 3 | -1), ("xor", 4 ^ 3 ^ -1), ("max", 4), ("min", -1), ("umax", -1),
     ("umin", 3), ("xchg", -1)],
)  # fmt: skip
def test_atomics_on_one_address_take_turns(builder: Any, mode: str, after: int) -> None:
    k = builder(INTS, INTS)
    values = k.constant(np.array([3, -1], np.int32), I32)
    old = k.op(
        "atomic_rmw_tko",
        addresses(k, k.args[0], np.zeros(2)),
        values,
        [],
        [],
        out=[tile((2,), I32), types.token],
        mode=mode,
        **ATOMIC,
    )[0]
    k.store_pointer(addresses(k, k.args[1], np.arange(2)), old)
    cell, before = np.array([4], np.int32), np.zeros(2, np.int32)
    k.run(cell, before)
    assert cell[0] == after
    first = {"add": 7, "and": 0, "or": 7, "xor": 7, "max": 4, "min": 3, "umax": 4, "umin": 3, "xchg": 3}[mode]
    assert before.tolist() == [4, first]


def test_float_atomics_round_to_the_element(builder: Any) -> None:
    half = types.PtrType(types.f16)
    k = builder(half)
    value = k.spread(k.constant(np.float16(2.0**-11), types.f16), (4,))
    k.op(
        "atomic_rmw_tko",
        addresses(k, k.args[0], np.zeros(4)),
        value,
        [],
        [],
        out=[tile((4,), types.f16), types.token],
        mode="addf",
        **ATOMIC,
    )
    cell = np.ones(1, np.float16)
    k.run(cell)
    assert cell[0] == 1  # each step is lost; the sum of the four would not be


def test_compare_and_swap_compares_bits(builder: Any) -> None:
    k = builder(FLOATS, FLOATS)
    expected = k.constant(np.array([0.0, 0.0, np.nan, 1.0], np.float32), F32)
    value = k.spread(k.constant(np.float32(9), F32), (4,))
    mask = k.constant(np.array([True, True, True, False]), I1)
    old = k.op(
        "atomic_cas_tko",
        addresses(k, k.args[0], np.arange(4)),
        expected,
        value,
        [mask],
        [],
        out=[tile((4,)), types.token],
        **ATOMIC,
    )[0]
    k.store_pointer(addresses(k, k.args[1], np.arange(4)), old)
    cells, before = np.array([0.0, -0.0, np.nan, 5.0], np.float32), np.zeros(4, np.float32)
    k.run(cells, before)
    assert cells.tolist() == [9, 0, 9, 5] and np.signbit(cells[1])
    assert before[3] == 1  # a masked-off element gives what it compares with


def test_atomic_reduction_of_a_view_adds_up_over_blocks(builder: Any) -> None:
    k = builder(INTS)
    view = k.view(k.args[0], (3,), (4,))
    k.op("atomic_red_view_tko", view, [k.i32(0)], k.spread(k.i32(2), (4,)), [], out=[types.token], mode="add", **ATOMIC)
    out = np.array([1, 2, 3], np.int32)
    k.run(out, grid=(5, 1, 1))
    assert out.tolist() == [11, 12, 13]


def test_bf16_survives_a_round_trip_through_a_tile(builder: Any) -> None:
    bits = np.array([0x0001, 0x8000, 0x7F80, 0xFF80, 0x3F81, 0xC2F0, 0x0080, 0x7F7F], np.uint16)
    pointer = types.PtrType(types.bf16)
    k = builder(pointer, pointer)
    k.store(k.view(k.args[1], (8,), (8,)), k.load(k.view(k.args[0], (8,), (8,)), 0)[0], 0)
    out = np.zeros(8, ml_dtypes.bfloat16)
    k.run(bits.view(ml_dtypes.bfloat16), out)
    assert np.array_equal(out.view(np.uint16), bits)


def test_an_allocation_is_contiguous() -> None:
    with pytest.raises(UsageError, match="contiguous"):
        Allocation(np.zeros((4, 4), np.float32)[:, :2])


@pytest.mark.parametrize("sanitize", [True, False])
@pytest.mark.parametrize(("rows", "byte"), [(6, "byte"), (5, None)])
def test_a_view_larger_than_its_allocation(builder: Any, rows: int, byte: str | None, sanitize: bool) -> None:
    """Only an access beyond the end is wrong: the first tile of the same view is fine."""
    for index in (0, 1):
        k = builder(FLOATS, FLOATS)
        loaded = k.load(k.view(k.args[0], (rows, 7), (4, 8)), index, 0)[0]
        k.store(k.view(k.args[1], (4, 8), (4, 8)), loaded, 0, 0)
        out = np.zeros((4, 8), np.float32)
        if byte and index:
            with pytest.raises(SanitizerError, match=r"load_view_tko at kernel\.mlir:.*140 bytes \(beyond its end\)"):
                k.run(X, out, sanitize=sanitize)
        else:
            k.run(X, out, sanitize=sanitize)
            assert np.array_equal(out[: 4 if index == 0 else 1, :7], X[index * 4 : index * 4 + 4])
