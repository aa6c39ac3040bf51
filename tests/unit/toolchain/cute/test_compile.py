from __future__ import annotations

import pytest

from toolchain.cute.compile import lower, to_ptx
from toolchain.errors import SourceError

KERNEL = """gpu.module @m {
  llvm.func @k(%y: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %a = cute.static : !cute.layout<"(6,8):(8,1)">
    %n = cute.size(%a) : (!cute.layout<"(6,8):(8,1)">) -> !cute.int_tuple<"48">
    %r = cute.get_scalars (%n) : !cute.int_tuple<"48">
    llvm.store %r, %y : i32, !llvm.ptr<1>
    llvm.return
  }
}"""


def test_text_with_cute_becomes_ptx() -> None:
    assert "cute." not in str(lower(KERNEL))
    made = to_ptx(KERNEL, "sm_80")
    assert "st.global.b32" in made and "48" in made


def test_an_error_names_the_file() -> None:
    with pytest.raises(SourceError, match=r"^k\.mlir"):
        to_ptx(KERNEL.replace('-> !cute.int_tuple<"48">', '-> !cute.int_tuple<"47">'), "sm_80", name="k.mlir")
