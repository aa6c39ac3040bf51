"""Accesses that conflict, and ways to order them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.ir import Region

from toolchain.errors import SanitizerError
from toolchain.tileir.dialect import types

I32, F32 = types.i32, types.f32
INTS = types.PtrType(I32)
SCALAR = types.TileType((), I32)
ATOMIC = {"memory_scope": "device", "mode": "add"}


def zeros() -> np.ndarray:
    return np.zeros(16, np.int32)


def at(k: Any, pointer: Any, offset: Any) -> Any:
    return k.op("offset", pointer, offset if not isinstance(offset, int) else k.i32(offset), out=[pointer.type])


def race(k: Any, *args: np.ndarray, blocks: int = 2) -> str:
    """The message of the race found; without sanitizing the kernel runs."""
    prepared = k.prepare()
    from toolchain.tileir.interpreter import Allocation, Pointer

    pointers = [Pointer(Allocation(a)) for a in args]
    prepared.launch("k", pointers, (blocks, 1, 1), sanitize=False)
    with pytest.raises(SanitizerError, match="no token or atomic orders the two") as caught:
        prepared.launch("k", pointers, (blocks, 1, 1))
    return str(caught.value)


def test_two_blocks_write_one_byte(builder: Any) -> None:
    k = builder(INTS)
    k.store_pointer(k.args[0], k.i32(1))
    message = race(k, zeros())
    assert "store_ptr_tko at kernel.mlir:2:3 in block (1, 0, 0) writes byte 0" in message
    assert "in block (0, 0, 0) writes" in message


@pytest.mark.parametrize(("step", "conflict"), [(3, True), (4, False)])
def test_overlapping_tiles(builder: Any, step: int, conflict: bool) -> None:
    """Tiles of four every `step` elements."""
    k = builder(INTS)
    tensor = types.TensorViewType((16,), (1,), I32)
    base = k.op("make_tensor_view", k.args[0], [], [], out=[tensor])
    view = k.op("make_strided_view", base, out=[types.StridedViewType((4,), (step,), tensor)])
    k.store(view, k.constant(np.int32(3), I32, (4,)), k.block_id()[0])
    if conflict:
        assert "writes byte 12" in race(k, zeros())
    else:
        k.run(zeros(), grid=(2, 1, 1))


@pytest.mark.parametrize("reader", [0, 1])
def test_one_block_reads_what_another_writes(builder: Any, reader: int) -> None:
    """The order of the two does not matter."""
    k = builder(INTS)
    x = k.block_id()[0]
    reads = k.op(
        "cmpi", x, k.i32(reader), out=[types.TileType((), types.i1)], comparison_predicate="equal", signedness="signed"
    )

    def read() -> None:
        k.load_pointer(k.args[0])
        k.op("yield", [])

    def write() -> None:
        k.store_pointer(k.args[0], k.i32(1))
        k.op("yield", [])

    k.op("if", reads, out=[[]], regions=[k.region([], read), k.region([], write)])
    message = race(k, zeros())
    assert "reads" in message and "writes" in message


def test_a_reader_hidden_behind_a_later_one(builder: Any) -> None:
    """Blocks 0 and 1 read, then 1 writes: 0's read conflicts though 1 read last."""
    k = builder(INTS)
    x = k.block_id()[0]
    value, token = k.load_pointer(k.args[0])
    last = k.op(
        "cmpi", x, k.i32(1), out=[types.TileType((), types.i1)], comparison_predicate="equal", signedness="signed"
    )

    def write() -> None:
        k.store_pointer(k.args[0], value, token=token)
        k.op("yield", [])

    k.op("if", last, out=[[]], regions=[k.region([], write), k.region([], lambda: k.op("yield", []))])
    assert "in block (0, 0, 0) reads" in race(k, zeros())


def test_blocks_may_read_together_and_write_apart(builder: Any) -> None:
    k = builder(INTS, INTS)
    x = k.block_id()[0]
    k.store_pointer(at(k, k.args[1], x), k.load_pointer(k.args[0])[0])
    k.run(zeros(), zeros(), grid=(8, 1, 1))


def test_accesses_of_different_sizes_share_bytes(builder: Any) -> None:
    """Block 0 writes an i32, block 1 a byte inside it."""
    k = builder(INTS)
    byte = types.TileType((), types.PtrType(types.i8))
    first = k.op(
        "cmpi",
        k.block_id()[0],
        k.i32(0),
        out=[types.TileType((), types.i1)],
        comparison_predicate="equal",
        signedness="signed",
    )

    def word() -> None:
        k.store_pointer(k.args[0], k.i32(1))
        k.op("yield", [])

    def part() -> None:
        place = at(k, k.op("ptr_to_ptr", k.args[0], out=[byte]), 3)
        k.store_pointer(place, k.constant(np.int8(1), types.i8))
        k.op("yield", [])

    k.op("if", first, out=[[]], regions=[k.region([], word), k.region([], part)])
    assert "byte 3" in race(k, zeros())


def rmw(k: Any, pointer: Any, order: str, token: Any = None, scope: str = "device") -> Any:
    fields = {**ATOMIC, "memory_scope": scope, "memory_ordering_semantics": order}
    return k.op("atomic_rmw_tko", pointer, k.i32(1), [], [token] if token else [], out=[SCALAR, types.token], **fields)


def test_atomics_of_all_blocks_agree(builder: Any) -> None:
    k = builder(INTS)
    rmw(k, k.args[0], "relaxed")
    out = zeros()
    k.run(out, grid=(5, 1, 1))
    assert out[0] == 5


def test_atomics_of_one_block_scope_do_not(builder: Any) -> None:
    k = builder(INTS)
    rmw(k, k.args[0], "relaxed", scope="tl_blk")
    assert "atomically updates" in race(k, zeros())


def test_an_atomic_and_a_plain_store_conflict(builder: Any) -> None:
    k = builder(INTS)
    token = rmw(k, k.args[0], "relaxed")[1]
    k.store_pointer(k.args[0], k.i32(0), token=token)
    race(k, zeros())


@pytest.mark.parametrize("order", ["acq_rel", "relaxed"])
def test_a_plain_read_of_what_blocks_add_up(builder: Any, order: str) -> None:
    """Every block adds to the sum and then to the counter; the third one reads the sum, of which its own part hides the
    others'. Whether it may depends on how the counter is kept."""
    k = builder(INTS, INTS)
    added = rmw(k, k.args[0], "relaxed")[1]
    counted = rmw(k, k.args[1], order, added)[1]
    third = k.op(
        "cmpi", k.block_id()[0], k.i32(2), out=[types.TileType((), types.i1)], comparison_predicate="equal",
        signedness="signed",
    )  # fmt: skip

    def read() -> None:
        k.load_pointer(k.args[0], token=counted)
        k.op("yield", [])

    k.op("if", third, out=[[]], regions=[k.region([], read), Region()])
    if order == "relaxed":
        message = race(k, zeros(), zeros(), blocks=3)
        assert "block (2, 0, 0) reads byte 0" in message and "in block (1, 0, 0) atomically updates" in message
    else:
        k.run(zeros(), zeros(), grid=(3, 1, 1))


@pytest.mark.parametrize(
    ("order", "conflict"), [("acq_rel", False), ("relaxed", True), ("acquire", True), ("release", True)]
)
def test_release_and_acquire_order_blocks(builder: Any, order: str, conflict: bool) -> None:
    """Each block takes the counter, reads the sum, writes it back and lets go."""
    k = builder(INTS, INTS)
    taken = rmw(k, k.args[1], order)[1]
    value, read = k.load_pointer(k.args[0], token=taken)
    following = k.op("addi", value, k.i32(1), out=[SCALAR], overflow="none")
    written = k.store_pointer(k.args[0], following, token=read)
    rmw(k, k.args[1], order, written)
    if conflict:
        race(k, zeros(), zeros())
    else:
        out = zeros()
        k.run(out, zeros(), grid=(3, 1, 1))
        assert out[0] == 3


def test_one_block_needs_a_token_to_read_what_it_wrote(builder: Any) -> None:
    for ordered in (False, True):
        k = builder(INTS)
        token = k.store_pointer(k.args[0], k.i32(1))
        k.load_pointer(k.args[0], token=token if ordered else None)
        if ordered:
            k.run(zeros())
        else:
            assert "load_ptr_tko" in race(k, zeros(), blocks=1)


def test_one_block_needs_a_token_to_write_twice(builder: Any) -> None:
    for ordered in (False, True):
        k = builder(INTS)
        first = k.store_pointer(k.args[0], k.i32(1))
        other = k.store_pointer(at(k, k.args[0], 1), k.i32(1))
        both = k.op("join_tokens", [first, other], out=[types.token])
        k.store_pointer(k.args[0], k.i32(2), token=both if ordered else other)
        if ordered:
            k.run(zeros())
        else:
            race(k, zeros(), blocks=1)


def test_tokens_order_through_what_lies_between(builder: Any) -> None:
    k = builder(INTS)
    first = k.store_pointer(k.args[0], k.i32(1))
    second = k.store_pointer(at(k, k.args[0], 1), k.i32(1), token=first)
    k.load_pointer(k.args[0], token=second)
    k.run(zeros())


def test_a_fence_between_aliases_orders_what_its_token_does(builder: Any) -> None:
    k = builder(INTS)
    first = k.store_pointer(k.args[0], k.i32(1))
    k.store_pointer(k.args[0], k.i32(2), token=k.op("memory_fence_alias_tko", first, out=[types.token]))
    out = zeros()
    k.run(out)
    assert out[0] == 2

    k = builder(INTS)
    k.store_pointer(k.args[0], k.i32(1))
    fence = k.op("memory_fence_alias_tko", k.op("make_token", out=[types.token]), out=[types.token])
    k.store_pointer(k.args[0], k.i32(2), token=fence)
    race(k, zeros(), blocks=1)


@pytest.mark.parametrize("name", ["gdc_wait_tko", "gdc_launch_dependents_tko"])
@pytest.mark.parametrize("waits", [True, False])
def test_grid_dependency_control_orders_what_its_token_does(builder: Any, name: str, waits: bool) -> None:
    """It orders nothing else, because launches run one after the other."""
    k = builder(INTS)
    first = k.store_pointer(k.args[0], k.i32(1))
    passed = k.op(name, [first] if waits else [], out=[types.token])
    k.store_pointer(k.args[0], k.i32(2), token=passed)
    if waits:
        out = zeros()
        k.run(out)
        assert out[0] == 2
    else:
        race(k, zeros(), blocks=1)


def test_a_read_hidden_behind_an_ordered_write(builder: Any) -> None:
    """The first store may come before the load; that the second comes after both does not help."""
    k = builder(INTS)
    read = k.load_pointer(k.args[0])[1]
    first = k.store_pointer(k.args[0], k.i32(1))
    k.store_pointer(k.args[0], k.i32(2), token=k.op("join_tokens", [read, first], out=[types.token]))
    message = race(k, zeros(), blocks=1)
    assert "load_ptr_tko" in message and "kernel.mlir:3:3" in message


def test_a_store_behind_a_branch_on_what_was_read_needs_no_token(builder: Any) -> None:
    k = builder(INTS)
    value = k.load_pointer(k.args[0])[0]
    empty = k.op(
        "cmpi", value, k.i32(0), out=[types.TileType((), types.i1)], comparison_predicate="equal", signedness="signed"
    )

    def write() -> None:
        k.store_pointer(k.args[0], k.i32(5))
        k.op("yield", [])

    k.op("if", empty, out=[[]], regions=[k.region([], write), k.region([], lambda: k.op("yield", []))])
    out = zeros()
    k.run(out)
    assert out[0] == 5


def test_a_store_of_what_was_read_needs_no_token(builder: Any) -> None:
    """In place: the store cannot come before the load whose value it stores."""
    k = builder(INTS)
    view = k.view(k.args[0], (16,), (8,))
    tile = types.TileType((8,), I32)
    x = k.block_id()[0]

    def body(_i: object, value: Any) -> None:
        k.op("continue", [k.op("addi", value, value, out=[tile], overflow="none")])

    loop = k.region([SCALAR, tile], body)
    doubled = k.op("for", k.i32(0), k.i32(2), k.i32(1), [k.load(view, x)[0]], out=[[tile]], regions=[loop])
    k.store(view, doubled, x)
    out = np.arange(16, dtype=np.int32)
    k.run(out, grid=(2, 1, 1))
    assert out.tolist() == [4 * i for i in range(16)]


def test_a_store_of_something_else_does(builder: Any) -> None:
    k = builder(INTS, INTS)
    k.load_pointer(k.args[0])
    k.store_pointer(k.args[0], k.load_pointer(k.args[1])[0])
    race(k, zeros(), zeros(), blocks=1)


def test_one_store_that_writes_two_values_to_one_address(builder: Any) -> None:
    tile = types.TileType((4,), I32)
    for values, conflict in (([1, 2, 3, 4], True), ([7, 7, 7, 7], False)):
        k = builder(INTS)
        places = k.op(
            "offset",
            k.spread(k.args[0], (4,)),
            k.constant(np.array([0, 1, 0, 2], np.int32), I32),
            out=[types.TileType((4,), INTS)],
        )
        value = k.constant(np.array(values, np.int32), I32)
        assert value.type == tile
        k.store_pointer(places, value)
        if conflict:
            with pytest.raises(SanitizerError, match="one store writes different values to one address"):
                k.run(zeros())
        else:
            k.run(zeros())
