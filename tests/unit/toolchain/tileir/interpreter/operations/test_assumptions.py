"""Assumptions that hold, and others that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.errors import SanitizerError
from toolchain.tileir.dialect import attrs, types
from toolchain.tileir.interpreter import Allocation, Pointer

I32 = types.i32
INTS = types.PtrType(I32)


@pytest.mark.parametrize(
    ("predicate", "good", "bad"),
    [
        (attrs.DivByAttr(8), 24, 20),
        (attrs.BoundedAttr(0, None), 0, -1),
        (attrs.BoundedAttr(-5, 7), 7, 8),
    ],
)
def test_assumption_about_an_integer(builder: Any, trapped: Any, predicate: Any, good: int, bad: int) -> None:
    k = builder(I32)
    k.op("assume", k.args[0], out=[k.args[0].type], predicate=predicate)
    k.run(good)
    k = builder(I32)
    k.op("assume", k.args[0], out=[k.args[0].type], predicate=predicate)
    assert "assume at kernel.mlir:1:3, before the first block: assumed" in trapped(k, f"value is {bad}", bad)


@pytest.mark.parametrize(
    ("divisor", "offset", "holds"), [(16, 16, True), (16, 8, False), (256, 0, True), (512, 0, False)]
)
def test_assumption_about_an_address(builder: Any, divisor: int, offset: int, holds: bool) -> None:
    k = builder(INTS)
    k.op("assume", k.args[0], out=[k.args[0].type], predicate=attrs.DivByAttr(divisor))
    args = [Pointer(Allocation(np.zeros(16, np.int32)), offset)]
    if holds:
        k.prepare().launch("k", args, (1, 1, 1))
    else:
        with pytest.raises(SanitizerError, match=rf"div_by<{divisor}>, but the address is 0x"):
            k.prepare().launch("k", args, (1, 1, 1))


@pytest.mark.parametrize(
    ("predicate", "good", "bad"),
    [
        (attrs.DivByAttr(4, 4, 0), [4, 5, 6, 7, 12, 13, 14, 15], [4, 5, 6, 7, 13, 14, 15, 16]),
        (attrs.DivByAttr(1, 4, 0), [4, 5, 6, 7, 13, 14, 15, 16], [4, 5, 7, 7, 13, 14, 15, 16]),
        (attrs.SameElementsAttr((2,)), [1, 1, 2, 2, 3, 3, 3, 3], [1, 1, 2, 2, 3, 4, 4, 4]),
    ],
)
def test_assumption_about_groups(builder: Any, trapped: Any, predicate: Any, good: list[int], bad: list[int]) -> None:
    def kernel(values: list[int]) -> Any:
        k = builder()
        value = k.constant(np.array(values, np.int32), I32)
        k.op("assume", value, out=[value.type], predicate=predicate)
        return k

    kernel(good).run()
    trapped(kernel(bad), "assume at .*assumed")


@pytest.mark.parametrize(("step", "holds"), [(1, True), (2, False)])
def test_assumption_about_groups_of_addresses(builder: Any, trapped: Any, step: int, holds: bool) -> None:
    """Within a group addresses go up by an element's size."""
    k = builder(INTS)
    numbers = k.constant(np.arange(4, dtype=np.int32) * step, I32)
    places = k.op("offset", k.spread(k.args[0], (4,)), numbers, out=[types.TileType((4,), INTS)])
    k.op("assume", places, out=[places.type], predicate=attrs.DivByAttr(16, 4, 0))
    if holds:
        k.run(np.zeros(8, np.int32))
    else:
        trapped(k, "div_by<16, every 4 along 0>", np.zeros(8, np.int32))


@pytest.mark.parametrize(("rows", "holds"), [(1, True), (0, True), (2, False)])
@pytest.mark.parametrize("static", [True, False])
def test_assumption_about_a_stride_that_addresses_nothing(
    builder: Any, trapped: Any, rows: int, holds: bool, static: bool
) -> None:
    """It is checked where the axis is longer than 1. cuTile claims that such strides are multiples of 16 bytes."""
    k = builder(INTS, I32, I32)
    pointer, length, stride = k.args
    for predicate in (attrs.BoundedAttr(0, None), attrs.DivByAttr(4)):
        stride = k.op("assume", stride, out=[stride.type], predicate=predicate)
    tensor = types.TensorViewType((rows if static else types.DYNAMIC, 4), (types.DYNAMIC, 1), I32)
    base = k.op("make_tensor_view", pointer, [] if static else [length], [stride], out=[tensor])
    view = k.op("make_partition_view", base, out=[types.PartitionViewType((2, 4), tensor, None, "zero")])
    k.store(view, k.constant(np.int32(7), I32, (2, 4)), 0, 0)
    memory = np.zeros(8, np.int32)
    if holds:
        k.run(memory, rows, 5)
        assert memory.tolist() == [7] * 4 * rows + [0] * (8 - 4 * rows)
    else:
        trapped(k, "assume at kernel.mlir:2:3, .*div_by<4>, but the value is 5", memory, rows, 5, runs_unchecked=False)


def test_assumption_about_a_stride_that_is_used_otherwise(builder: Any, trapped: Any) -> None:
    k = builder(INTS, I32)
    stride = k.op("assume", k.args[1], out=[k.args[1].type], predicate=attrs.DivByAttr(4))
    k.op("make_tensor_view", k.args[0], [], [stride], out=[types.TensorViewType((1, 4), (types.DYNAMIC, 1), I32)])
    k.op("print_tko", [stride], [], out=[types.token], str="%d")
    trapped(k, "assume at kernel.mlir:1:3, .*div_by<4>, but the value is 5", np.zeros(8, np.int32), 5)
