"""Control flow, grids, arguments, and the errors for an unknown op or a wrong argument."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.ir import Region

from toolchain.errors import LaunchError, SanitizerError, UsageError
from toolchain.tileir.dialect import ops, types
from toolchain.tileir.interpreter import Allocation, Pointer
from toolchain.tileir.interpreter.operations.codegen import LOWERINGS

I32 = types.TileType((), types.i32)
I1 = types.TileType((), types.i1)
PTR = types.PtrType(types.i32)


def add(k: Any, a: Any, b: Any) -> Any:
    return k.op("addi", a, b, out=[I32], overflow="none")


def less(k: Any, a: Any, b: Any) -> Any:
    return k.op("cmpi", a, b, out=[I1], comparison_predicate="less_than", signedness="signed")


@pytest.mark.parametrize(("bounds", "total"), [((0, 10, 3), 18), ((5, 5, 1), 0), ((-2, 2, 1), -2)])
def test_for_sums_its_range(builder: Any, bounds: tuple[int, int, int], total: int) -> None:
    k = builder(PTR, types.i32, types.i32, types.i32)

    def body(i: Any, total: Any) -> None:
        k.op("continue", [add(k, total, i)])

    loop = k.region([I32, I32], body)
    k.store_pointer(k.args[0], k.op("for", *k.args[1:], [k.i32(0)], out=[[I32]], regions=[loop]))
    out = np.full(1, 99, np.int32)
    k.run(out, *bounds)
    assert out[0] == total


def test_unsigned_for_counts_past_the_signed_range(builder: Any) -> None:
    k = builder(PTR)

    def body(i: Any, n: Any) -> None:
        negative = k.op("exti", less(k, i, k.i32(0)), out=[I32], signedness="unsigned")
        k.op("continue", [add(k, add(k, n, n), negative)])

    loop = k.region([I32, I32], body)
    low, high = k.i32(2**31 - 2), k.i32(-(2**31) + 2)
    result = k.op("for", low, high, k.i32(1), [k.i32(0)], out=[[I32]], regions=[loop], unsignedCmp=None)
    k.store_pointer(k.args[0], result)
    out = np.zeros(1, np.int32)
    k.run(out)
    assert out[0] == 0b0011  # the last two of the four indices are negative when read as signed


def test_loop_with_break_and_continue_inside_if(builder: Any) -> None:
    """Sums odd numbers below 10, skipping by `continue`, leaving by `break`."""
    k = builder(PTR)

    def body(i: Any, total: Any) -> None:
        following = add(k, i, k.i32(1))
        stop = less(k, k.i32(9), i)
        k.op(
            "if",
            stop,
            out=[[]],
            regions=[k.region([], lambda: k.op("break", [i, total])), k.region([], lambda: k.op("yield", []))],
        )
        even = k.op(
            "cmpi",
            k.op("andi", i, k.i32(1), out=[I32]),
            k.i32(0),
            out=[I1],
            comparison_predicate="equal",
            signedness="signed",
        )
        k.op(
            "if",
            even,
            out=[[]],
            regions=[
                k.region([], lambda: k.op("continue", [following, total])),
                k.region([], lambda: k.op("yield", [])),
            ],
        )
        k.op("continue", [following, add(k, total, i)])

    inner = k.region([I32, I32], body)
    _, total = k.op("loop", [k.i32(0), k.i32(0)], out=[[I32, I32]], regions=[inner])
    k.store_pointer(k.args[0], total)
    out = np.zeros(1, np.int32)
    k.run(out)
    assert out[0] == 25


def test_if_yields_a_branch_per_block_and_return_ends_one_block(builder: Any) -> None:
    k = builder(PTR)
    x = k.block_id()[0]
    place = k.op("offset", k.args[0], x, out=[k.args[0].type])
    first = less(k, x, k.i32(1))
    value = k.op(
        "if", first, out=[[I32]],
        regions=[k.region([], lambda: k.op("yield", [k.i32(7)])), k.region([], lambda: k.op("yield", [add(k, x, x)]))],
    )  # fmt: skip
    late = less(k, k.i32(2), x)
    k.op(
        "if",
        late,
        out=[[]],
        regions=[k.region([], lambda: k.op("return", [])), k.region([], lambda: k.op("yield", []))],
    )
    k.store_pointer(place, value)
    out = np.full(4, -1, np.int32)
    k.run(out, grid=(4, 1, 1))
    assert out.tolist() == [7, 2, 4, -1]


@pytest.mark.parametrize("sanitize", [True, False])
def test_a_block_that_has_returned_meets_no_trap_behind_that(builder: Any, sanitize: bool) -> None:
    """100 / n does not depend on the block, but is not to be divided where n is 0."""
    k = builder(PTR, types.i32)
    zero = k.op("cmpi", k.args[1], k.i32(0), out=[I1], comparison_predicate="equal", signedness="signed")
    k.op("if", zero, out=[[]], regions=[k.region([], lambda: k.op("return", [])), Region()])
    k.store_pointer(k.args[0], k.op("divi", k.i32(100), k.args[1], out=[I32], signedness="signed", rounding="zero"))
    prepared, out = k.prepare(), np.zeros(1, np.int32)
    for n, expected in ((0, 0), (7, 14)):
        prepared.launch("k", [Pointer(Allocation(out)), n], (1, 1, 1), sanitize)
        assert out[0] == expected


@pytest.mark.parametrize("loops", [True, False])
def test_control_flow_too_deep_for_python(builder: Any, loops: bool) -> None:
    k = builder(types.i1)

    def nest(depth: int) -> None:
        def body(*_: Any) -> None:
            if depth:
                nest(depth - 1)
            k.op("continue" if loops else "yield", [])

        if loops:
            k.op("for", k.i32(0), k.i32(1), k.i32(1), [], out=[[]], regions=[k.region([I32], body)])
        else:
            k.op("if", k.args[0], out=[[]], regions=[k.region([], body), Region()])

    nest(25 if loops else 105)
    with pytest.raises(UsageError, match="k: its loops and branches nest deeper"):
        k.run(1)


def test_return_from_inside_loops_ends_one_block(builder: Any) -> None:
    """Block x leaves its loops at their x-th step; block 3 comes to their end."""
    k = builder(PTR)
    x = k.block_id()[0]
    place = k.op("offset", k.args[0], x, out=[k.args[0].type])

    def body(i: Any) -> None:
        found = k.op("cmpi", i, x, out=[I1], comparison_predicate="equal", signedness="signed")
        last = k.op("cmpi", i, k.i32(2), out=[I1], comparison_predicate="equal", signedness="signed")

        def leave() -> None:
            k.store_pointer(place, add(k, i, k.i32(10)))
            k.op("return", [])

        def inner_body() -> None:
            k.op("if", found, out=[[]], regions=[k.region([], leave), k.region([], lambda: k.op("yield", []))])
            k.op("break", [])

        inner = k.region([], inner_body)
        k.op("loop", [], out=[[]], regions=[inner])
        done = k.region([], lambda: k.op("break", [i]))
        k.op("if", last, out=[[]], regions=[done, k.region([], lambda: k.op("yield", []))])
        k.op("continue", [add(k, i, k.i32(1))])

    k.op("loop", [k.i32(0)], out=[[I32]], regions=[k.region([I32], body)])
    k.store_pointer(place, x)
    out = np.full(4, -1, np.int32)
    k.run(out, grid=(4, 1, 1))
    assert out.tolist() == [10, 11, 12, 3]


def test_nested_loops_keep_their_own_carried_values(builder: Any) -> None:
    k = builder(PTR)

    def outer(i: Any, total: Any) -> None:
        inner = k.region([I32, I32], lambda _j, n: k.op("continue", [add(k, n, i)]))
        here = k.op("for", k.i32(0), k.i32(3), k.i32(1), [total], out=[[I32]], regions=[inner])
        k.op("continue", [here])

    loop = k.region([I32, I32], outer)
    k.store_pointer(k.args[0], k.op("for", k.i32(0), k.i32(4), k.i32(1), [k.i32(0)], out=[[I32]], regions=[loop]))
    out = np.zeros(1, np.int32)
    k.run(out)
    assert out[0] == 18


def test_swapped_carried_values(builder: Any) -> None:
    k = builder(PTR)
    loop = k.region([I32, I32, I32], lambda _i, a, b: k.op("continue", [b, a]))
    a, _ = k.op("for", k.i32(0), k.i32(3), k.i32(1), [k.i32(5), k.i32(6)], out=[[I32, I32]], regions=[loop])
    k.store_pointer(k.args[0], a)
    out = np.zeros(1, np.int32)
    k.run(out)
    assert out[0] == 6


def test_block_and_grid_coordinates(builder: Any) -> None:
    k = builder(PTR)
    ids, sizes = k.block_id(), k.op("get_num_tile_blocks", out=[I32] * 3)
    place = ids[2]
    for d in (1, 0):
        place = add(k, k.op("muli", place, sizes[d], out=[I32], overflow="none"), ids[d])
    k.store_pointer(k.op("offset", k.args[0], place, out=[k.args[0].type]), place)
    out = np.zeros(24, np.int32)
    k.run(out, grid=(2, 3, 4))
    assert out.tolist() == list(range(24))


def test_an_empty_grid_runs_nothing(builder: Any) -> None:
    k = builder(PTR)
    k.store_pointer(k.args[0], k.i32(1))
    out = np.zeros(1, np.int32)
    k.run(out, grid=(0, 1, 1))
    assert out[0] == 0


def test_globals_live_as_long_as_the_module(builder: Any) -> None:
    from toolchain.tileir.dialect import attrs

    k = builder(PTR)
    kind = types.TileType((2,), types.i32)
    value = attrs.DenseAttr(np.array([40, 41], np.int32).tobytes(), kind)
    k.globals.append(
        ops.GlobalOp.build(properties={"sym_name": attrs.StrAttr("g"), "value": value, "alignment": attrs.IntAttr(4)})
    )
    pointer = k.op("get_global", out=[types.TileType((), PTR)], global_name="g")
    value, token = k.load_pointer(pointer)
    following = add(k, value, k.i32(1))
    k.store_pointer(pointer, following, token=token)
    k.store_pointer(k.args[0], following)
    prepared = k.prepare()
    out = np.zeros(1, np.int32)
    for expected in (41, 42):
        prepared.launch("k", [Pointer(Allocation(out))], (1, 1, 1))
        assert out[0] == expected


@pytest.mark.parametrize("sanitize", [True, False])
def test_assert_names_message_element_and_place(builder: Any, sanitize: bool) -> None:
    k = builder()
    condition = k.constant(np.array([True, True, False, True]), types.i1)
    k.op("assert", condition, message="sorted")
    with pytest.raises(SanitizerError, match=r"k: assert at kernel\.mlir:2:3, .*element \(2,\): sorted"):
        k.run(sanitize=sanitize)


def test_wrong_arguments(builder: Any) -> None:
    k = builder(PTR, types.i32, types.bf16)
    prepared = k.prepare()
    pointer = Pointer(Allocation(np.zeros(1, np.int32)))
    prepared.launch("k", [pointer, 3, 0.5], (1, 1, 1))
    for args, message in (
        ([pointer, 3], "2 arguments for 3"),
        ([3, 3, 0.5], "argument 0 is 3"),
        ([pointer, 2**31, 0.5], "argument 1 is 2147483648, outside of i32"),
        ([pointer, 1.5, 0.5], "argument 1 is 1.5"),
    ):
        with pytest.raises(LaunchError, match=message):
            prepared.launch("k", args, (1, 1, 1))
    for grid in ((1, -1, 1), (2**31, 1, 1), (1, 65536, 1), (1, 1, 65536)):  # as a GPU
        with pytest.raises(LaunchError, match=r"k: .*grid"):
            prepared.launch("k", [pointer, 3, 0.5], grid)
    prepared.launch("k", [pointer, 3, 0.5], (0, 1, 1))  # no block
    with pytest.raises(UsageError, match="no entry 'other'"):
        prepared.launch("other", [], (1, 1, 1))


def test_a_float_argument_is_rounded_to_its_type(builder: Any) -> None:
    k = builder(types.PtrType(types.f32), types.bf16)
    wide = k.op("ftof", k.args[1], out=[types.TileType((), types.f32)], rounding_mode="nearest_even")
    k.store_pointer(k.args[0], wide)
    out = np.zeros(1, np.float32)
    k.run(out, 0.1)
    assert out[0] == np.float32(ml_dtypes.bfloat16(0.1))


def test_every_operation_is_there() -> None:
    assert set(ops.OPS) == set(LOWERINGS)
