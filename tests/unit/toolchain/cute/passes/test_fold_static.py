from __future__ import annotations

from toolchain.cute.parse import parse
from toolchain.cute.passes import PASSES

BEFORE = """
func.func @f(%m: i32) -> (!cute.layout<"(2,4):(2,1)">, !cute.layout<"(?,2):(1,4)">) {
  %a = cute.static : !cute.layout<"(8,4):(4,1)">
  %t = cute.static : !cute.shape<"(2,4)">
  %u = cute.get_shape(%a) : !cute.layout<"(8,4):(4,1)"> -> !cute.shape<"(8,4)">
  %d = cute.right_inverse(%a) : (!cute.layout<"(8,4):(4,1)">) -> !cute.layout<"(4,8):(8,1)">
  %r = cute.static : !cute.layout<"(2,4):(4,1)">
  %g = cute.make_layout(%t, %s) : (!cute.shape<"(2,4)">, !cute.stride<"(2,1)">) -> !cute.layout<"(2,4):(2,1)">
  %x = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,2)">
  %y = cute.static : !cute.stride<"(1,4)">
  %l = cute.make_layout(%x, %y) : (!cute.shape<"(?,2)">, !cute.stride<"(1,4)">) -> !cute.layout<"(?,2):(1,4)">
  func.return %g, %l : !cute.layout<"(2,4):(2,1)">, !cute.layout<"(?,2):(1,4)">
}
""".replace("  %g =", '  %s = cute.static : !cute.stride<"(2,1)">\n  %g =')


def test_what_is_known_becomes_static_and_what_is_unused_goes() -> None:
    module = parse(BEFORE)
    PASSES["cute-fold-static"](module)
    module.verify()
    assert [op.name for op in module.walk()] == [
        "builtin.module",
        "func.func",
        "cute.static",  # %g, folded
        "cute.make_shape",
        "cute.static",  # the strides of %l
        "cute.make_layout",
        "func.return",
    ]
    assert 'cute.static : !cute.layout<"(2,4):(2,1)">' in str(module)


def test_a_comparison_that_is_known_becomes_a_constant() -> None:
    module = parse("""
func.func @f(%m: i32) -> (i1, i1) {
  %a = cute.static : !cute.coord<"(3,4)">
  %b = cute.static : !cute.shape<"(5,6)">
  %c = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,6)">
  %x = cute.elem_less(%a, %b) : (!cute.coord<"(3,4)">, !cute.shape<"(5,6)">) -> i1
  %y = cute.elem_less(%a, %c) : (!cute.coord<"(3,4)">, !cute.shape<"(?,6)">) -> i1
  func.return %x, %y : i1, i1
}""")
    PASSES["cute-fold-static"](module)
    names = [op.name for op in module.walk()]
    assert "arith.constant" in names
    assert names.count("cute.elem_less") == 1
    assert "arith.constant true" in str(module)
