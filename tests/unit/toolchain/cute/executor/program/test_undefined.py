"""Operands without a result: found in threads that compute them, and in no others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerAttr, f32, i32
from xdsl.ir import Attribute, Operation
from xdsl.utils.test_value import create_ssa_value

from toolchain.cute import dsl as cute
from toolchain.cute.executor import NoSemantics, Undefined, run
from toolchain.cute.executor.program.undefined import conditions_of as conditions

LOWEST, HIGHEST = -(2**31), 2**31 - 1
WORDS = st.integers(LOWEST, HIGHEST)
VALUES = st.one_of(WORDS, st.sampled_from([0, 1, -1, 31, 32, LOWEST, HIGHEST]))


def two(kind: Any, type_: Attribute = i32, *more: Any) -> Operation:
    return kind(create_ssa_value(type_), create_ssa_value(type_), *more)


def found(op: Operation, *values: object, dtype: type = np.int32) -> bool:
    """True if a test of the operation says that these operands have no result."""
    return any(bool(test(*(np.array([value], dtype) for value in values))[0][0]) for test in conditions(op))


@given(VALUES, VALUES)
@example(LOWEST, -1)
def test_divisions(a: int, b: int) -> None:
    for kind in (arith.DivSIOp, arith.RemSIOp, llvm.SDivOp, llvm.SRemOp):
        assert found(two(kind), a, b) == (b == 0 or (a, b) == (LOWEST, -1))
    for kind in (arith.DivUIOp, arith.RemUIOp, llvm.UDivOp, llvm.URemOp):
        assert found(two(kind), a, b) == (b == 0)


@given(VALUES, VALUES)
def test_shifts(a: int, b: int) -> None:
    for kind in (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp, llvm.LShrOp, llvm.AShrOp):
        assert found(two(kind), a, b) == (not 0 <= b < 32)


@given(st.floats(width=32))
@example(2.0**31)
@example(-(2.0**31))
@example(-0.5)
@example(math.nan)
def test_floats_to_integers(value: float) -> None:
    whole = math.trunc(value) if math.isfinite(value) else None
    for kind, low, high in ((arith.FPToSIOp, LOWEST, HIGHEST), (arith.FPToUIOp, 0, 2**32 - 1)):
        op = kind(create_ssa_value(f32), i32)
        assert found(op, value, dtype=np.float32) == (whole is None or not low <= whole <= high)


@given(VALUES, VALUES)
def test_promises_that_nothing_overflows(a: int, b: int) -> None:
    signed = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])
    both = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW, arith.IntegerOverflowFlag.NUW])
    assert found(two(arith.AddiOp, i32, None, signed), a, b) == (not LOWEST <= a + b <= HIGHEST)
    assert found(two(arith.MuliOp, i32, None, signed), a, b) == (not LOWEST <= a * b <= HIGHEST)
    wraps = not LOWEST <= a - b <= HIGHEST or a % 2**32 < b % 2**32
    assert found(two(arith.SubiOp, i32, None, both), a, b) == wraps
    op = two(llvm.SubOp)
    op.properties["overflowFlags"] = IntegerAttr(3, i32)
    assert found(op, a, b) == wraps
    assert not conditions(two(arith.AddiOp))


def test_constants_that_are_fine_are_not_asked_about() -> None:
    def by(kind: Any, number: int) -> Operation:
        return kind(create_ssa_value(i32), arith.ConstantOp(IntegerAttr(number, i32)).result)

    assert not conditions(by(arith.DivUIOp, 8)) and not conditions(by(arith.RemSIOp, 8))
    assert not conditions(by(arith.ShLIOp, 31)) and not conditions(by(arith.ShRUIOp, 0))
    for op in (by(arith.DivUIOp, 0), by(arith.DivSIOp, -1), by(arith.ShLIOp, 32), by(arith.ShLIOp, -1)):
        assert conditions(op)


def test_no_division_of_one_bit() -> None:
    text = KERNEL.replace("BODY", "%b = arith.trunci %t : i32 to i1\n %r = arith.divui %b, %b : i1")
    with pytest.raises(NoSemantics, match=r":5:.*no arith.divui of i1"):
        run(text.replace("%r, %p : i32", "%t, %p : i32"), (np.zeros(40, np.int32),))


KERNEL = """gpu.module @m {
  llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 40>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    BODY
    %p = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %p : i32, !llvm.ptr<1>
    llvm.return
  }
}
"""


def launch(body: str) -> np.ndarray[Any, Any]:
    out = np.full(40, -1, np.int32)
    run(KERNEL.replace("BODY", body), (out,))
    return out


@pytest.mark.parametrize(
    ("body", "thread", "said"),
    [
        (
            "%c = arith.constant 37 : i32 %d = arith.subi %c, %t : i32 %r = arith.divsi %c, %d : i32",
            37,
            "37 / 0 has no",
        ),
        (
            "%c = arith.constant 37 : i32 %d = arith.subi %t, %c : i32 %r = arith.remui %t, %d : i32",
            37,
            "37 / 0 has no",
        ),
        ("%r = arith.shli %t, %t : i32", 32, "a shift of 32 by 32 bits: the value has 32"),
        (
            "%f = arith.sitofp %t : i32 to f32 %e = math.exp %f : f32 %r = arith.fptosi %e : f32 to i32",
            22,
            "3584912896.0 does not fit into an integer of 32 bits",
        ),
    ],
)
def test_the_finding_names_thread_and_values(body: str, thread: int, said: str) -> None:
    with pytest.raises(Undefined, match="-?" + said.replace(".", r"\.")) as caught:
        launch(body)
    assert caught.value.site.thread == thread and caught.value.site.location.startswith("<kernel>:4:")


def test_threads_that_are_not_active_are_not_asked() -> None:
    body = """%c = arith.constant 32 : i32
    %zero = arith.constant 0 : i32
    %d = arith.subi %t, %c : i32
    %is = arith.cmpi ne, %t, %c : i32
    %r = scf.if %is -> (i32) {
      %q = arith.divsi %c, %d : i32
      scf.yield %q : i32
    } else {
      scf.yield %zero : i32
    }"""
    wanted = [int(32 / (t - 32)) if t != 32 else 0 for t in range(40)]
    assert launch(body).tolist() == wanted


def test_a_vector_is_asked_element_by_element() -> None:
    body = """%n = arith.constant dense<[1, 0]> : vector<2xi32>
    %v = arith.divui %n, %n : vector<2xi32>
    %r = arith.addi %t, %t : i32"""
    with pytest.raises(Undefined, match="thread 0: 0 / 0 has no result"):
        launch(body)


@cute.kernel(cute.Array("i32", rank=1), cute.Number32(), threads=32)
def divided(out: Any, by: Any) -> None:
    thread = cute.arch.thread_idx()[0]
    out[thread] = cute.scalar(thread // by, "i32")


def test_the_python_line_is_named() -> None:
    out = np.zeros(32, np.int32)
    run(divided, (out, 4))
    assert out.tolist() == [t // 4 for t in range(32)]
    with pytest.raises(Undefined, match=r"arith.divui at \S*test_undefined.py:\d+:\d+, .* thread 0: 0 / 0"):
        run(divided, (out, 0))
