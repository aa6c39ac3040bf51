"""What becomes of a chunk of CuTe IR's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.suites.cute import judge
from toolchain.cute.chunks import TestFile
from toolchain.errors import SourceError

READ = """// RUN: cute-opt %s -split-input-file | FileCheck %s
// RUN: cute-opt -mlir-print-op-generic %s -split-input-file | cute-opt | FileCheck %s
// CHECK: cute.size (%[[A:.+]]) : (!cute.shape<"(2,3)">) -> !cute.int_tuple<"6">
func.func @f(%a: !cute.shape<"(2,3)">) {
  %r = cute.size(%a) : (!cute.shape<"(2,3)">) -> !cute.int_tuple<"6">
  return
}
"""
REFUSED = """// RUN: cute-opt %s -split-input-file -verify-diagnostics
// expected-error @+1 {{positive}}
func.func @f(%a: !cute.layout<"0:1">) {
  return
}
"""
LOWERED = """// RUN: cute-opt -cute-fold-static -cute-expand-ops -cute-to-base %s \\
// RUN:   | cute-opt -reconcile-unrealized-casts | FileCheck %s --check-prefix=AFTER
// AFTER-NOT: cute.
// AFTER: return %{{.+}} : i32
func.func @f(%a: !cute.shape<"(2,?)">) -> !cute.int_tuple<"?"> {
  %r = cute.size(%a) : (!cute.shape<"(2,?)">) -> !cute.int_tuple<"?">
  return %r : !cute.int_tuple<"?">
}
"""
RUN = """// RUN: env BASE=3 %cutlass-compiler-run-host %s | FileCheck %s
// CHECK: (4,5):(1,4)
// CHECK-NEXT: 11
func.func @main() {
  %n = arith.constant 5 : i32
  %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(4,?)">
  %d = cute.make_stride() : () -> !cute.stride<"(1,4)">
  %l = cute.make_layout(%s, %d) : (!cute.shape<"(4,?)">, !cute.stride<"(1,4)">) -> !cute.layout<"(4,?):(1,4)">
  cute.print(%l) : !cute.layout<"(4,?):(1,4)">
  %c = cute.static : !cute.coord<"(3,2)">
  %i = cute.layout_eval(%c, %l) : (!cute.coord<"(3,2)">, !cute.layout<"(4,?):(1,4)">) -> !cute.int_tuple<"11">
  cute.print(%i) : !cute.int_tuple<"11">
  return
}
"""


def judged(text: str) -> None:
    file = TestFile(text)
    for chunk in file.chunks:
        judge(Path("k.mlir"), file, chunk)


@pytest.mark.parametrize("text", [READ, REFUSED, LOWERED, RUN], ids=["read", "refused", "lowered", "run"])
def test_what_is_met_passes(text: str) -> None:
    judged(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (READ.replace("cute.size (", "cute.cosize ("), "CHECK: cute.cosize"),
        (READ.replace('"6"', '"7"'), "the result is"),
        (REFUSED.replace("0:1", "2:1"), "accepted, and not: positive"),
        (LOWERED.replace("AFTER: return", "AFTER: arith.divsi"), "CHECK: arith.divsi"),
        (RUN.replace("CHECK-NEXT: 11", "CHECK-NEXT: 12"), "NEXT: 12"),
        (LOWERED.replace("-cute-to-base", "-cute-to-nothing"), "no pass 'cute-to-nothing'"),
    ],
)
def test_what_is_not_met_fails(text: str, said: str) -> None:
    with pytest.raises((AssertionError, SourceError, Exception), match=said):
        judged(text)


def test_another_tool_s_test_is_skipped() -> None:
    with pytest.raises(pytest.skip.Exception):
        judged("// RUN: base-opt %s | FileCheck %s\nfunc.func private @f()\n")
