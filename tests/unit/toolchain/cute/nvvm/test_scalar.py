"""Numbers of the layout algebra that a program computes: what is emitted computes what the algebra says."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1
from xdsl.ir import Block, Operation, SSAValue

from toolchain.cute.layout import Swizzle
from toolchain.cute.nvvm.scalar import NO_WRAP, WRAPS, Scalar, as_integer, compared


def truncated(a: int, b: int) -> int:
    return int(a / b)


def rest(a: int, b: int) -> int:
    return a - b * int(a / b)


def ceiled(a: int, b: int) -> int:
    return -(-a // b)


INTEGERS: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: operator.add, arith.SubiOp: operator.sub, arith.MuliOp: operator.mul,
    arith.DivSIOp: truncated, arith.RemSIOp: rest, arith.CeilDivSIOp: ceiled,
    arith.MinSIOp: min, arith.AndIOp: operator.and_,
    arith.XOrIOp: operator.xor, arith.ShRUIOp: operator.rshift, arith.ShLIOp: operator.lshift,
}  # fmt: skip


class Program:
    """A block that operations go to; `value` computes what they make of the numbers of its arguments."""

    def __init__(self, *numbers: int, width: int = 32) -> None:
        self.ops: list[Operation] = []
        self.block = Block(arg_types=[IntegerType(width)] * len(numbers))
        self.numbers: dict[SSAValue, int] = dict(zip(self.block.args, numbers, strict=True))
        self.given = [Scalar(width, 1, value, self) for value in self.block.args]

    def insert(self, op: Any) -> Any:
        self.ops.append(op)
        return op

    def value(self, of: Any) -> int:
        if isinstance(of, int):
            return of
        number = of.value if isinstance(of, Scalar) else of
        assert isinstance(number, SSAValue)
        if number in self.numbers:
            return self.numbers[number]
        op: Any = number.owner
        match op:
            case arith.ConstantOp():
                assert isinstance(op.value, IntegerAttr)
                return op.value.value.data
            case arith.ExtSIOp():
                return self.value(op.operands[0])
            case math.AbsIOp():
                return abs(self.value(op.operands[0]))
            case arith.CmpiOp():
                tests = [operator.eq, operator.ne, operator.lt]
                return tests[op.predicate.value.data](*map(self.value, op.operands))
            case scf.IfOp():
                taken = op.true_region if self.value(op.cond) else op.false_region
                last: Any = taken.block.last_op
                return self.value(last.operands[0])
            case _:
                return INTEGERS[type(op)](*map(self.value, op.operands))


PAIRS = [(12, 5), (5, 12), (-7, 3), (8, 8), (1, 4)]


def least(a: Any, b: Any) -> Any:
    return a.minimum(b)


def rounded_up(a: Any, b: Any) -> Any:
    return a.ceil_by(b)


def from_zero(a: Any, b: Any) -> Any:
    return abs(a) + b


OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], int]]] = {
    "add": (operator.add, operator.add), "sub": (operator.sub, operator.sub), "mul": (operator.mul, operator.mul),
    "div": (operator.floordiv, truncated), "mod": (operator.mod, rest), "min": (least, min),
    "ceil": (rounded_up, ceiled), "abs": (from_zero, from_zero),
}  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_emitted_computes_what_the_algebra_says(pair: tuple[int, int], name: str) -> None:
    (of, wanted), program = OPERATORS[name], Program(*pair)
    a, b = program.given
    assert program.value(of(a, b)) == wanted(*pair)
    assert program.value(of(a, pair[1])) == wanted(*pair)  # a number that is known


@pytest.mark.parametrize(("a", "b", "wanted"), [(12, 5, 2), (5, 12, 1), (8, 8, 1), (3, 4, 1)])
def test_a_size_by_another_is_at_least_1(a: int, b: int, wanted: int) -> None:
    program = Program(a, b)
    x, y = program.given
    assert [program.value(one) for one in (x.shape_by(y), x.shape_by(b), y.shape_of(a))] == [wanted] * 3


@pytest.mark.parametrize(("bits", "base", "shift"), [(3, 4, 3), (2, 0, 2), (1, 5, -1)])
def test_bits_are_mixed_as_a_swizzle_mixes_them(bits: int, base: int, shift: int) -> None:
    for number in (0, 0x1B7, 0x3FF, 12345):
        program = Program(number)
        assert program.value(program.given[0].swizzled(bits, base, shift)) == Swizzle(bits, base, shift)(number)
    assert program.given[0].swizzled(0, base, shift) is program.given[0]


def test_what_is_known_or_the_same_emits_nothing() -> None:
    program = Program(5)
    (a,) = program.given
    assert a * 1 is a and a + 0 is a and a // 1 is a and a * 0 == 0 and a % 1 == 0
    assert program.ops == []


def test_arithmetic_does_not_wrap_and_is_as_wide_as_its_wider_number() -> None:
    program = Program(5)
    narrow, wide = program.given[0], Scalar(64, 1, Block(arg_types=[IntegerType(64)]).args[0], program)
    made = narrow * wide + 3
    assert made.width == 64 and made.value.type == IntegerType(64)
    assert [op.overflow_flags for op in program.ops if isinstance(op, WRAPS)] == [NO_WRAP, NO_WRAP]
    assert any(isinstance(op, arith.ExtSIOp) for op in program.ops)
    assert as_integer(narrow, 32, program) is narrow.value
    assert as_integer(7, 64, program).type == IntegerType(64)


def test_numbers_are_compared_at_the_greater_width() -> None:
    program = Program(5, -6)
    a, b = program.given
    made = compared("slt", b, a, program)
    assert made.type == i1 and program.value(made)
    assert not program.value(compared("eq", a, 4, program))
    assert np.bool_(program.value(compared("ne", a, 4, program)))


def test_a_pointers_offset_is_no_such_number() -> None:
    with pytest.raises(NotImplementedError, match="in units of 4"):
        Program(5).given[0].split(4)
