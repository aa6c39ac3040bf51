"""Accesses outside an allocation or a tensor, misaligned accesses, and indices of parts that a tile does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.errors import SanitizerError
from toolchain.tileir.dialect import attrs, types
from toolchain.tileir.interpreter import Allocation, Pointer

F32, I32, I64 = types.f32, types.i32, types.i64
FLOATS, INTS = types.PtrType(F32), types.PtrType(I32)
WEAK = {"memory_ordering_semantics": "weak"}


def tile(shape: tuple[int, ...] = (), element: Any = F32) -> types.TileType:
    return types.TileType(shape, element)


@pytest.mark.parametrize(("offset", "where"), [(6, "beyond its end"), (-1, "before its start"), (2**31 - 1, "beyond")])
@pytest.mark.parametrize("access", ["load", "store", "atomic"])
@pytest.mark.parametrize("sanitize", [True, False])
def test_outside_an_allocation(builder: Any, access: str, offset: int, where: str, sanitize: bool) -> None:
    k = builder(INTS)
    place = k.op("offset", k.args[0], k.i32(offset), out=[k.args[0].type])
    if access == "load":
        k.load_pointer(place)
    elif access == "store":
        k.store_pointer(place, k.i32(0))
    else:
        fields = {"memory_ordering_semantics": "relaxed", "memory_scope": "device", "mode": "add"}
        k.op("atomic_rmw_tko", place, k.i32(1), [], [], out=[tile((), I32), types.token], **fields)
    with pytest.raises(SanitizerError, match=rf"_tko at kernel\.mlir:.*block \(0, 0, 0\): .* 24 bytes \({where}"):
        k.run(np.zeros(6, np.int32), sanitize=sanitize)


def test_misaligned_address(builder: Any, trapped: Any) -> None:
    k = builder(INTS)
    i64 = tile((), I64)
    address = k.op("ptr_to_int", k.args[0], out=[i64])
    odd = k.op("addi", address, k.constant(np.int64(2), I64), out=[i64], overflow="none")
    k.load_pointer(k.op("int_to_ptr", odd, out=[k.args[0].type]))
    trapped(k, "not a multiple of its 4 bytes", np.zeros(6, np.int32), runs_unchecked=False)


def test_misaligned_tensor(builder: Any) -> None:
    k = builder(INTS)
    k.view(k.args[0], (2,), (2,))
    with pytest.raises(SanitizerError, match="starts at byte 2, not a multiple of its element size"):
        k.prepare().launch("k", [Pointer(Allocation(np.zeros(4, np.int32)), 2)], (1, 1, 1))


@pytest.mark.parametrize(("offset", "inside"), [(5, True), (6, False)])
def test_the_first_byte_beyond_the_end(builder: Any, trapped: Any, offset: int, inside: bool) -> None:
    k = builder(types.PtrType(types.i8))
    k.load_pointer(k.op("offset", k.args[0], k.i32(offset), out=[k.args[0].type]))
    if inside:
        k.run(np.zeros(6, np.int8))
    else:
        trapped(k, "bytes 6 .. 6 of an allocation of 6 bytes", np.zeros(6, np.int8), runs_unchecked=False)


@pytest.mark.parametrize("name", ["load_view_tko", "store_view_tko"])
@pytest.mark.parametrize(
    ("inbounds", "row", "column", "problem"),
    [
        ((True, True), 1, 0, None),
        ((True, False), 1, 1, None),
        ((False, True), 2, 0, None),
        ((True, False), 2, 0, "dimension 0 of the tile holds elements 4 .. 5 of a tensor that has 4 there"),
        ((False, True), 0, 1, "dimension 1 of the tile holds elements 4 .. 7 of a tensor that has 6 there"),
        ((True, True), -1, 0, "dimension 0 of the tile holds elements -2 .. -1 of a tensor that has 4"),
        ((False, False), 2, 1, None),
    ],
)
def test_inbounds(
    builder: Any, trapped: Any, name: str, inbounds: tuple[bool, ...], row: int, column: int, problem: Any
) -> None:
    """(2, 4) tiles of a (4, 6) tensor; what is outside reads as 0 and is not written."""
    k = builder(FLOATS)
    view = k.view(k.args[0], (4, 6), (2, 4))
    index = [k.i32(row), k.i32(column)]
    promised = {**WEAK, "inbounds": attrs.BoolsAttr(inbounds)}
    if name == "load_view_tko":
        k.op(name, view, index, [], out=[tile((2, 4)), types.token], **promised)
    else:
        k.op(name, k.constant(np.float32(0), F32, (2, 4)), view, index, [], out=[types.token], **promised)
    array = np.zeros((4, 6), np.float32)
    if problem is None:
        k.run(array)
    else:
        trapped(k, f"{name} at kernel.mlir.*{problem}", array)


@pytest.mark.parametrize(("rows", "inside"), [([0, 3], True), ([0, 4], False), ([-1, 2], False)])
def test_inbounds_of_gathered_rows(builder: Any, trapped: Any, rows: list[int], inside: bool) -> None:
    k = builder(FLOATS)
    tensor = types.TensorViewType((4, 8), (8, 1), F32)
    base = k.op("make_tensor_view", k.args[0], [], [], out=[tensor])
    view = k.op("make_gather_scatter_view", base, out=[types.GatherScatterViewType((2, 8), tensor, 0, "zero")])
    index = [k.constant(np.array(rows, np.int32), I32), k.i32(0)]
    promised = {**WEAK, "inbounds": attrs.BoolsAttr((True, False))}
    k.op("load_view_tko", view, index, [], out=[tile((2, 8)), types.token], **promised)
    array = np.zeros((4, 8), np.float32)
    if inside:
        k.run(array)
    else:
        trapped(k, f"dimension 0 of the tile holds elements {rows[0]} .. {rows[1]} of a tensor that has 4", array)


@pytest.mark.parametrize("index", [4, -1])
def test_a_subtile_to_insert_that_does_not_exist(builder: Any, trapped: Any, index: int) -> None:
    k = builder(I32)
    part, whole = (k.constant(np.float32(0), F32, (n,)) for n in (2, 8))
    k.op("insert", part, whole, [k.args[0]], out=[tile((8,))])
    trapped(k, rf"subtile index \({index},\) is outside \(4,\)", index, runs_unchecked=False)


def test_a_subtile_that_does_not_exist(builder: Any, trapped: Any) -> None:
    k = builder(I32)
    k.op("extract", k.constant(np.float32(0), F32, (8,)), [k.args[0]], out=[tile((2,))])
    trapped(k, r"subtile index \(4,\) is outside \(4,\)", 4, runs_unchecked=False)
