from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.interpreter import Interpreter, InterpreterFunctions, impl, register_impls
from xdsl.interpreters.arith import ArithFunctions
from xdsl.interpreters.func import FuncFunctions

from toolchain.cute.layout.swizzle import Swizzle
from toolchain.cute.parse import parse
from toolchain.cute.passes import PASSES
from toolchain.errors import SourceError


@register_impls
class Unsigned(InterpreterFunctions):
    """The unsigned operations that xDSL's interpreter lacks; the numbers here are not negative."""

    @impl(arith.DivUIOp)
    def divide(self, _: Interpreter, op: arith.DivUIOp, args: tuple[int, int]) -> tuple[int]:
        del op
        return (args[0] // args[1],)

    @impl(arith.RemUIOp)
    def remainder(self, _: Interpreter, op: arith.RemUIOp, args: tuple[int, int]) -> tuple[int]:
        del op
        return (args[0] % args[1],)

    @impl(arith.ShRUIOp)
    def shift(self, _: Interpreter, op: arith.ShRUIOp, args: tuple[int, int]) -> tuple[int]:
        del op
        return (args[0] >> args[1],)


def run(text: str, *numbers: int) -> list[int]:
    """What a function `f` returns after the pass, computed by xDSL's interpreter."""
    module = parse(text)
    PASSES["cute-lower"](module)
    module.verify()
    assert not any(op.name.startswith("cute.") for op in module.walk())
    interpreter = Interpreter(module)
    interpreter.register_implementations(FuncFunctions())
    interpreter.register_implementations(ArithFunctions())
    interpreter.register_implementations(Unsigned())
    return list(interpreter.call_op("f", numbers))


OFFSET = """
func.func @f(%m: i32, %i: i32, %j: i32) -> i32 {
  %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,(4,2))">
  %d = cute.make_stride(%m) : (i32) -> !cute.stride<"(8,(1,?))">
  %l = cute.make_layout(%s, %d)
         : (!cute.shape<"(?,(4,2))">, !cute.stride<"(8,(1,?))">) -> !cute.layout<"(?,(4,2)):(8,(1,?))">
  %c = cute.make_coord(%i, %j) : (i32, i32) -> !cute.coord<"(?,?)">
  %o = cute.crd2idx(%c, %l) : (!cute.coord<"(?,?)">, !cute.layout<"(?,(4,2)):(8,(1,?))">) -> !cute.int_tuple<"?">
  %r = cute.get_scalars (%o) : !cute.int_tuple<"?">
  func.return %r : i32
}"""
TILES = """
func.func @f(%m: i32) -> (i32, i32) {
  %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,64)">
  %t = cute.static : !cute.shape<"(128,16)">
  %n = cute.ceil_div(%s, %t) : (!cute.shape<"(?,64)">, !cute.shape<"(128,16)">) -> !cute.shape<"(?,4)">
  %a, %b = cute.get_scalars (%n) : !cute.shape<"(?,4)">
  func.return %a, %b : i32, i32
}"""
INSIDE = """
func.func @f(%i: i32, %m: i32) -> i1 {
  %c = cute.make_coord(%i) : (i32) -> !cute.coord<"(?,3)">
  %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,4)">
  %r = cute.elem_less(%c, %s) : (!cute.coord<"(?,3)">, !cute.shape<"(?,4)">) -> i1
  func.return %r : i1
}"""


def test_the_offset_of_a_coordinate_is_computed() -> None:
    for i, j in ((0, 0), (3, 5), (1, 7)):
        assert run(OFFSET, 100, i, j) == [8 * i + j % 4 + 100 * (j // 4)]


def test_the_offset_in_a_swizzled_layout_is_computed() -> None:
    kinds = '!cute.coord<"?">, !cute.composed_layout<"S<2,4,3> o 0 o (8,64):(64,1)">'
    text = f"""func.func @f(%i: i32) -> i32 {{
      %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
      %l = cute.static : !cute.composed_layout<"S<2,4,3> o 0 o (8,64):(64,1)">
      %o = cute.crd2idx(%c, %l) : ({kinds}) -> !cute.int_tuple<"?">
      %r = cute.get_scalars (%o) : !cute.int_tuple<"?">
      func.return %r : i32
    }}"""
    swizzle = Swizzle(2, 4, 3)
    for i in (0, 1, 63, 77, 510):
        assert run(text, i) == [swizzle(64 * (i % 8) + i // 8)]


def test_the_number_of_tiles_is_rounded_up_and_what_is_known_is_a_constant() -> None:
    assert run(TILES, 300) == [3, 4]
    assert run(TILES, 256) == [2, 4]


def test_a_comparison_tests_what_is_not_known() -> None:
    assert [bool(run(INSIDE, i, 7)[0]) for i in (6, 7)] == [True, False]


def test_only_the_unknown_numbers_are_taken_if_asked() -> None:
    text = TILES.replace("%a, %b = cute.get_scalars (", "%a = cute.get_scalars<{only_dynamic}> (")
    assert run(text.replace("%a, %b : i32, i32", "%a : i32").replace("(i32, i32) {", "i32 {"), 300) == [3]


def test_a_value_of_cute_that_leaves_is_an_error() -> None:
    static = '%a = cute.static : !cute.shape<"4">'
    with pytest.raises(SourceError, match=r"^<kernel>:2:1: cute-lower: func\.return takes a value of cute"):
        run(f'func.func @f() -> !cute.shape<"4"> {{ {static}\nfunc.return %a : !cute.shape<"4"> }}')
    with pytest.raises(
        SourceError, match=r"^<kernel>:2:1: cute-lower: cute\.size takes a .* that no operation of cute makes"
    ):
        run(
            'func.func @f(%a: !cute.shape<"4">) -> i32 {\n'
            '%n = cute.size(%a) : (!cute.shape<"4">) -> !cute.int_tuple<"4">\n'
            '%r = cute.get_scalars (%n) : !cute.int_tuple<"4">\nfunc.return %r : i32\n}'
        )
