"""Programs at the base level: what they print."""

from __future__ import annotations

import pytest

from ci.suites.base_level import printed
from toolchain.cute.parse import parse
from toolchain.errors import UsageError

PRINTF = """llvm.func @printf(!llvm.ptr, ...) -> i32
llvm.mlir.global internal constant @text("%d %lld\\0A\\00") {addr_space = 0 : i32}
func.func @show(%a: i32, %b: i64) {
  %p = llvm.mlir.addressof @text : !llvm.ptr
  %f = llvm.getelementptr %p[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<9 x i8>
  %r = llvm.call @printf(%f, %a, %b) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr, i32, i64) -> i32
  return
}
"""


def test_numbers_have_widths_and_signs() -> None:
    program = """func.func @main() {
      %a = arith.constant -7 : i32
      %b = arith.constant 2 : i32
      %q = arith.divsi %a, %b : i32
      %m = arith.remsi %a, %b : i32
      %big = arith.constant 2147483647 : i32
      %w = arith.addi %big, %b : i32
      %l = arith.extsi %w : i32 to i64
      func.call @show(%q, %l) : (i32, i64) -> ()
      func.call @show(%m, %l) : (i32, i64) -> ()
      return
    }"""
    assert printed(parse(PRINTF + program)) == "-3 -2147483647\n-1 -2147483647\n"


def test_structs_branches_and_kernels() -> None:
    program = """module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @f(%n: i32) kernel {
          %t = gpu.thread_id x
          %c = arith.constant 1 : index
          %i = arith.cmpi eq, %t, %c : index
          %s = ub.poison : !llvm.struct<(i32, struct<(i32)>)>
          %u = llvm.insertvalue %n, %s[1, 0] : !llvm.struct<(i32, struct<(i32)>)>
          %v = llvm.extractvalue %u[1, 0] : !llvm.struct<(i32, struct<(i32)>)>
          scf.if %i {
            gpu.printf "thread 1 has %d\\0A", %v : i32
          }
          gpu.return
        }
      }
      func.func @main() {
        %one = arith.constant 1 : index
        %four = arith.constant 4 : index
        %n = arith.constant 5 : i32
        gpu.launch_func @k::@f blocks in (%one, %one, %one) threads in (%four, %one, %one) args(%n : i32)
        return
      }
    }"""
    assert printed(parse(program)) == "thread 1 has 5\n"


def test_what_has_no_meaning_is_named() -> None:
    with pytest.raises(UsageError, match=r"math\.sqrt has no meaning here"):
        printed(parse("func.func @main() {\n%x = arith.constant 2.0 : f32\n%y = math.sqrt %x : f32\nreturn\n}"))
