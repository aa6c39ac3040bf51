"""What a kernel prints, thread after thread."""

from __future__ import annotations

from typing import Any

import pytest

from toolchain.cute.executor import run

PRINTING = """gpu.module @m {
  llvm.mlir.global internal constant @format("thread %d of %d\\0A\\00") {addr_space = 0 : i32} : !llvm.array<17 x i8>
  llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
  llvm.func @k() attributes {nvvm.kernel, nvvm.reqntid = array<i32: 40>} {
    %one = arith.constant 1 : i32
    %count = arith.constant 40 : i32
    %last = arith.constant 37 : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %format = llvm.mlir.addressof @format : !llvm.ptr
    %numbers = llvm.alloca %one x !llvm.array<2 x i32> : (i32) -> !llvm.ptr
    %second = llvm.getelementptr %numbers[1] : (!llvm.ptr) -> !llvm.ptr, i32
    llvm.store %t, %numbers : i32, !llvm.ptr
    llvm.store %count, %second : i32, !llvm.ptr
    %late = arith.cmpi sgt, %t, %last : i32
    scf.if %late {
      %n = llvm.call @vprintf(%format, %numbers) : (!llvm.ptr, !llvm.ptr) -> i32
    }
    llvm.return
  }
}
"""


def test_each_active_thread_prints_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    arguments: tuple[Any, ...] = ()
    run(PRINTING, arguments)
    assert capsys.readouterr().out == "thread 38 of 40\nthread 39 of 40\n"
