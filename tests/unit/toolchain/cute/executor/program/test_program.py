"""Branches and loops of single threads, and kernels as text."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.cute.executor import Uninitialised, run
from toolchain.errors import UsageError


def kernel(body: str) -> str:
    """A kernel that puts a number of its thread, %r, into an array."""
    return f"""
gpu.module @m {{
  llvm.func @k(%x: !llvm.ptr<1>) attributes {{nvvm.kernel, nvvm.reqntid = array<i32: 40>}} {{
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c10 = arith.constant 10 : i32
    {body}
    %p = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %p : i32, !llvm.ptr<1>
    llvm.return
  }}
}}
"""


def result(body: str) -> list[int]:
    found = np.full(40, -1, np.int32)
    run(kernel(body), (found,))
    return found.tolist()


def test_each_thread_takes_its_side_of_a_branch() -> None:
    body = """
    %small = arith.cmpi slt, %t, %c10 : i32
    %r = scf.if %small -> (i32) {
      %odd = arith.andi %t, %c1 : i32
      %is = arith.cmpi eq, %odd, %c1 : i32
      %v = scf.if %is -> (i32) { scf.yield %c1 : i32 } else { scf.yield %c0 : i32 }
      scf.yield %v : i32
    } else {
      %v = arith.addi %t, %t : i32
      scf.yield %v : i32
    }"""
    assert result(body) == [t % 2 if t < 10 else 2 * t for t in range(40)]


def test_each_thread_runs_its_number_of_turns() -> None:
    body = """
    %r, %other = scf.for %i = %c0 to %t step %c1 iter_args(%a = %c0, %b = %c1) -> (i32, i32) : i32 {
      %s = arith.addi %a, %b : i32
      scf.yield %b, %s : i32, i32
    }"""
    fibonacci = [0, 1]
    while len(fibonacci) < 40:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    assert result(body) == fibonacci


def test_a_loop_with_a_condition() -> None:
    body = """
    %r = scf.while (%a = %t) : (i32) -> i32 {
      %more = arith.cmpi sgt, %a, %c10 : i32
      scf.condition(%more) %a : i32
    } do {
    ^body(%b: i32):
      %less = arith.subi %b, %c10 : i32
      scf.yield %less : i32
    }"""
    assert result(body) == [t if t <= 10 else (t - 1) % 10 + 1 for t in range(40)]


SEVERAL = """
gpu.module @m {
  llvm.func @one(%x: !llvm.ptr<1>) attributes {nvvm.kernel} { llvm.return }
  llvm.func @two(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %b = nvvm.read.ptx.sreg.ctaid.y : i32
    %t = nvvm.read.ptx.sreg.tid.y : i32
    %n = nvvm.read.ptx.sreg.ntid.y : i32
    %s = arith.muli %b, %n : i32
    %i = arith.addi %s, %t : i32
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %i, %p : i32, !llvm.ptr<1>
    llvm.return
  }
}
"""


def test_a_kernel_by_name_with_threads_and_blocks_in_two_dimensions() -> None:
    found = np.zeros(6, np.int32)
    run(SEVERAL, (found,), (1, 3), threads=(1, 2), name="two")
    assert found.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("args", "options", "said"),
    [
        ((1,), {"threads": 1}, "no one kernel ''"),
        ((), {"threads": 1, "name": "two"}, "has 1 parameters, 0 arguments"),
        ((1,), {"threads": 1, "name": "two"}, "argument 0: int is no argument for !llvm.ptr<1>"),
        ((np.zeros(1),), {"name": "two"}, r"\(0, 1, 1\) threads"),
        ((np.zeros(1),), {"threads": 2048, "name": "two"}, "1 to 1024 threads"),
        ((np.zeros(1),), {"threads": 1, "shared_bytes": 1 << 20, "name": "two"}, "a block has at most"),
    ],
)
def test_wrong_launches(args: tuple[object, ...], options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(SEVERAL, args, **options)  # pyright: ignore[reportArgumentType]


def test_a_value_that_is_undefined_is_not_zero() -> None:
    with pytest.raises(Uninitialised, match=r"arith.addi at <kernel>:\d+:\d+, .*a register is used that nothing"):
        result("%u = llvm.mlir.undef : i32\n %r = arith.addi %t, %u : i32")
