"""Steps of a warp: registers of the hardware, addresses, loads and stores, and values that branches leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolchain.cute.executor import OutOfBounds, run

KERNEL = """gpu.module @m {
  llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c5 = arith.constant 5 : i32
    %tx = nvvm.read.ptx.sreg.tid.x : i32
    %ty = nvvm.read.ptx.sreg.tid.y : i32
    %tz = nvvm.read.ptx.sreg.tid.z : i32
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %nx = nvvm.read.ptx.sreg.ntid.x : i32
    %ny = nvvm.read.ptx.sreg.ntid.y : i32
    %r0 = arith.muli %tz, %ny : i32
    %r1 = arith.addi %r0, %ty : i32
    %r2 = arith.muli %r1, %nx : i32
    %t = arith.addi %r2, %tx : i32
    BODY
    llvm.return
  }
}
"""
STORE = """
    %p = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %p : i32, !llvm.ptr<1>"""


def result(body: str, threads: tuple[int, ...] = (40,), out: Any = None) -> Any:
    found = np.full(int(np.prod(threads)), -1, np.int32) if out is None else out
    run(KERNEL.replace("BODY", body), (found,), threads=threads)
    return found


@pytest.mark.parametrize(
    ("register", "size", "every"), [("%tx", 3, 1), ("%ty", 5, 3), ("%tz", 4, 15), ("%lane", 32, 1)]
)
def test_threads_in_three_dimensions(register: str, size: int, every: int) -> None:
    found = result(f"%r = arith.addi {register}, %c0 : i32" + STORE, (3, 5, 4))
    assert found.tolist() == [t // every % size for t in range(60)]


def test_an_address_in_nested_arrays() -> None:
    body = """
    %p = llvm.getelementptr %x[%c1, 2, %t] : (!llvm.ptr<1>, i32, i32) -> !llvm.ptr<1>, !llvm.array<3 x array<4 x i32>>
    llvm.store %t, %p : i32, !llvm.ptr<1>"""
    found = result(body, (4,), np.full((2, 3, 4), -1, np.int32).reshape(-1))
    assert found.tolist() == [-1] * 20 + [0, 1, 2, 3]


def test_an_index_below_zero_is_before_the_array() -> None:
    with pytest.raises(OutOfBounds, match=r"argument 0\[-1\]"):
        result("%m = arith.subi %t, %c1 : i32 %r = arith.addi %t, %c0 : i32" + STORE.replace("[%t]", "[%m]"), (4,))


def test_registers_with_an_address_differ_by_thread() -> None:
    body = """
    %c3 = arith.constant 3 : i32
    %slots = llvm.alloca %c1 x !llvm.array<3 x i32> : (i32) -> !llvm.ptr
    scf.for %i = %c0 to %c3 step %c1 : i32 {
      %turned = arith.addi %i, %t : i32
      %slot = arith.remui %turned, %c3 : i32
      %at = llvm.getelementptr %slots[%slot] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      llvm.store %i, %at : i32, !llvm.ptr
    }
    %two = arith.remui %t, %c2 : i32
    %mine = llvm.getelementptr %slots[%two] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %r = llvm.load %mine : !llvm.ptr -> i32"""
    assert result(body + STORE).tolist() == [(t % 2 - t) % 3 for t in range(40)]


def test_a_value_that_threads_leave_a_loop_with_stays() -> None:
    body = """
    %r = scf.for %i = %c0 to %t step %c1 iter_args(%a = %c5) -> (i32) : i32 {
      %b = arith.addi %a, %i : i32
      scf.yield %b : i32
    }"""
    assert result(body + STORE).tolist() == [5 + t * (t - 1) // 2 for t in range(40)]
