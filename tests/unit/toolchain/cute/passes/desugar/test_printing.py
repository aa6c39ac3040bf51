"""`cute.print`: what a kernel prints has every number that only it knows, wherever that stands in a type."""

from __future__ import annotations

import pytest

from toolchain.cute.compile import to_ptx
from toolchain.cute.executor import run
from toolchain.errors import SourceError

MAKE = {
    "shape": ('%r = cute.make_shape(%x) : (i32) -> !cute.shape<"(?,4)">', 'shape<"(?,4)">', "(6,4)"),
    "stride": ('%r = cute.make_stride(%x) : (i32) -> !cute.stride<"(?@0,1@1)">', 'stride<"(?@0,1@1)">', "(6@0,1@1)"),
    "tile": ('%r = cute.make_tile(%x, %y) : (i32, i32) -> !cute.tile<"[?:2;_;?:1]">', 'tile<"[?:2;_;?:1]">',
             "[6:2;_;7:1]"),
    "composed": ("""%i = cute.static : !cute.layout<"(4,8):(1,4)">
        %o = cute.make_int_tuple(%x) : (i32) -> !cute.int_tuple<"?">
        %r = cute.make_composed_layout(%i, %o, %i) : (!cute.layout<"(4,8):(1,4)">, !cute.int_tuple<"?">,
                 !cute.layout<"(4,8):(1,4)">) -> !cute.composed_layout<"(4,8):(1,4) o ? o (4,8):(1,4)">""",
                 'composed_layout<"(4,8):(1,4) o ? o (4,8):(1,4)">', "(4,8):(1,4) o 6 o (4,8):(1,4)"),
    "swizzled": ("""%z = cute.static : !cute.swizzle<"S<3,4,3>">
        %o = cute.static : !cute.int_tuple<"0">
        %s = cute.make_shape(%x) : (i32) -> !cute.shape<"(?,8)">
        %d = cute.make_stride(%y) : (i32) -> !cute.stride<"(1,?)">
        %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,8)">, !cute.stride<"(1,?)">) -> !cute.layout<"(?,8):(1,?)">
        %r = cute.make_composed_layout(%z, %o, %l) : (!cute.swizzle<"S<3,4,3>">, !cute.int_tuple<"0">,
                 !cute.layout<"(?,8):(1,?)">) -> !cute.composed_layout<"S<3,4,3> o 0 o (?,8):(1,?)">""",
                 'composed_layout<"S<3,4,3> o 0 o (?,8):(1,?)">', "S<3,4,3> o 0 o (6,8):(1,7)"),
}  # fmt: skip


def kernel(make: str, kind: str) -> str:
    """A kernel of one thread that prints %r."""
    return f"""gpu.module @k {{
      llvm.func @main() attributes {{nvvm.kernel, nvvm.reqntid = array<i32: 1>}} {{
        %x = arith.constant 6 : i32
        %y = arith.constant 7 : i32
        {make}
        cute.print(%r) : !cute.{kind}
        llvm.return
      }}
    }}"""


@pytest.mark.parametrize("name", MAKE)
def test_every_number_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    make, kind, printed = MAKE[name]
    run(kernel(make, kind), ())
    assert capsys.readouterr().out == printed + "\n"


def test_the_numbers_of_a_composed_layout_have_an_address() -> None:
    make, kind, _ = MAKE["composed"]
    ptx = to_ptx(kernel(make, kind), "sm_80")
    assert "vprintf" in ptx and "cvta.local" in ptx  # of the slot that holds the numbers; NULL has none


def test_a_tensor_whose_layout_is_not_known_is_refused() -> None:
    make = """%p = llvm.mlir.zero : !llvm.ptr<1>
        %q = cute.make_ptr(%p) : (!llvm.ptr<1>) -> !cute.ptr<f32, gmem, align<16>>
        %s = cute.make_shape(%x) : (i32) -> !cute.shape<"?">
        %d = cute.static : !cute.stride<"1">
        %l = cute.make_layout(%s, %d) : (!cute.shape<"?">, !cute.stride<"1">) -> !cute.layout<"?:1">
        %r = cute.make_view(%q, %l) : !cute.ptr<f32, gmem, align<16>>, !cute.layout<"?:1">"""
    with pytest.raises(SourceError, match="has 1 numbers to print, and 0 are found in it"):
        to_ptx(kernel(make, 'memref<f32, gmem, align<16>, "?:1">'), "sm_80")
