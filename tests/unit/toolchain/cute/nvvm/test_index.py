from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from tests.unit.toolchain.cute.layout.strategies import layouts
from toolchain.cute.layout import Dynamic, Layout, size
from toolchain.cute.layout.leaves import smaller
from toolchain.cute.layout.swizzle import Swizzle
from toolchain.cute.nvvm.emit import Emitter
from toolchain.cute.nvvm.index import Index, as_value, index

PYTHON: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b, arith.SubiOp: lambda a, b: a - b, arith.MuliOp: lambda a, b: a * b,
    arith.DivUIOp: lambda a, b: a // b, arith.RemUIOp: lambda a, b: a % b, arith.MinUIOp: min,
    arith.AndIOp: lambda a, b: a & b, arith.XOrIOp: lambda a, b: a ^ b, arith.ShRUIOp: lambda a, b: a >> b,
    arith.ShLIOp: lambda a, b: a << b,
}  # fmt: skip


class Kernel:
    """A block with one argument, and what it computes for a number."""

    def __init__(self, below: int | None = None) -> None:
        self.block = Block(arg_types=[i32])
        self.builder = Emitter(InsertPoint.at_end(self.block))
        self.x = index(self.block.args[0], self.builder, below=below)

    def run(self, result: Index, x: int) -> int:
        wanted = result.value  # emitted now
        values: dict[SSAValue, int] = {self.block.args[0]: x}
        for op in self.block.ops:
            if isinstance(op, arith.ConstantOp):
                values[op.result] = int(op.value.value.data)  # pyright: ignore[reportAttributeAccessIssue]
            else:
                values[op.results[0]] = PYTHON[type(op)](*(values[operand] for operand in op.operands))
        return values[wanted]


@given(layouts(), st.booleans())
def test_a_layout_emits_the_arithmetic_that_python_does(layout: Layout, bounded: bool) -> None:
    kernel = Kernel(size(layout) if bounded else None)
    offset = layout(kernel.x)
    for x in range(size(layout)):
        assert (kernel.run(offset, x) if isinstance(offset, Index) else offset) == layout(x)


@pytest.mark.parametrize("swizzle", [Swizzle(2, 4, 3), Swizzle(2, 1, -2), Swizzle(3, 0, 3), Swizzle(1, 1, 30)], ids=str)
def test_a_swizzle_emits_the_arithmetic_that_python_does(swizzle: Swizzle) -> None:
    kernel = Kernel()
    offset = swizzle(kernel.x * 2 + 1)
    for x in range(0, 1 << 12, 7):
        assert kernel.run(offset, x) == swizzle(2 * x + 1)


def test_what_changes_nothing_emits_nothing() -> None:
    kernel = Kernel(below=32)
    assert kernel.x % 32 is kernel.x
    assert kernel.x // 32 == 0
    assert kernel.x * 1 + 0 is kernel.x
    assert list(kernel.block.ops) == []
    assert kernel.x * 8 % 4 == 0  # 8 x is a multiple of 4


@pytest.mark.parametrize(("plus", "x", "wanted"), [(5, 30, 3), (-5, 30, 25), (-5, 5, 0)])
def test_what_a_number_is_below_moves_with_what_is_added(plus: int, x: int, wanted: int) -> None:
    kernel = Kernel(below=32)
    moved = kernel.x + plus
    assert (moved.below, moved.plus) == (32 + plus, plus)
    remainder = moved % 32
    assert kernel.run(remainder, x) == wanted
    assert (remainder is moved) == (plus < 0)  # 27 and less: there is nothing to divide


def test_the_minimum_is_emitted_too() -> None:
    kernel = Kernel()
    assert [kernel.run(smaller(12, kernel.x), x) for x in (7, 20)] == [7, 12]
    assert isinstance(as_value(3, kernel.x.builder).owner, arith.ConstantOp)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="bound to no kernel"):
        as_value(Dynamic(), kernel.x.builder)  # pyright: ignore[reportArgumentType]


def test_numbers_on_the_left() -> None:
    kernel = Kernel()
    assert kernel.run(100 - kernel.x, 7) == 93
    assert kernel.run(100 // kernel.x, 7) == 14
    assert kernel.run(100 % kernel.x, 7) == 2


def test_an_index_without_a_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="bound to no kernel"):
        _ = Index() + 1


def test_numbers_that_differ_by_a_known_number_share_all_else() -> None:
    kernel = Kernel()
    row = kernel.x * 64
    made = [row + 128 * i for i in range(4)]
    assert len(list(kernel.block.ops)) == 2  # the factor and the product
    assert [kernel.run(one, 3) for one in made] == [192, 320, 448, 576]
    assert (kernel.x * 8 + 4).divisibility == 4
    assert kernel.run((kernel.x + 32) % 4, 7) == 3
    assert kernel.run((kernel.x + 32) // 4, 7) == 9


@pytest.mark.parametrize(("factor", "far", "near"), [(16, 7 * 16 + 32, 5), (3, 32, 7 * 3 + 5)])
def test_the_part_of_a_sum_that_is_a_multiple(factor: int, far: int, near: int) -> None:
    kernel = Kernel()
    parts = (kernel.x * factor + 37).split(8)
    assert [part if isinstance(part, int) else kernel.run(part, 7) for part in parts] == [far, near]
