"""`cute-canonicalize`, beyond cute-canonicalize.mlir: every part of what was put together, and blocks in blocks."""

from __future__ import annotations

import pytest

from toolchain.cute.parse import parse
from toolchain.cute.passes.canonicalize import PARTS, canonicalize

SHAPE, STRIDE, LAYOUT = '!cute.shape<"(?,4)">', '!cute.stride<"(4,1)">', '!cute.layout<"(?,4):(4,1)">'
COORD, TUPLE = '!cute.coord<"(?,4)">', '!cute.int_tuple<"(?,4)">'
SWIZZLE, ZERO = '!cute.swizzle<"S<3,4,3>">', '!cute.int_tuple<"0">'
COMPOSED = '!cute.composed_layout<"S<3,4,3> o 0 o (?,4):(4,1)">'
POINTER, MEMREF = "!cute.ptr<f32, gmem, align<16>>", '!cute.memref<f32, gmem, align<16>, "(?,4):(4,1)">'
STRIDES = '!cute.stride<"(?,4)">'
# What puts a value together: its operands' types and its own.
MAKERS: dict[str, tuple[tuple[str, ...], str]] = {
    "make_layout": ((SHAPE, STRIDE), LAYOUT),
    "make_composed_layout": ((SWIZZLE, ZERO, LAYOUT), COMPOSED),
    "make_view": ((POINTER, LAYOUT), MEMREF),
}
TUPLES = {"shape": SHAPE, "stride": STRIDES, "coord": COORD, "int_tuple": TUPLE}


def canonical(text: str) -> str:
    module = parse(text, "k.mlir")
    canonicalize(module)
    module.verify()
    return str(module)


@pytest.mark.parametrize(("name", "maker"), PARTS)
def test_a_part_is_what_it_was_made_of(name: str, maker: str) -> None:
    if maker in MAKERS:
        kinds, made = MAKERS[maker]
        written = ", ".join(kinds) if maker == "make_view" else f"({', '.join(kinds)})"
        result = "" if maker == "make_view" else f" -> {made}"
    else:  # a conversion there, and one back
        kinds = (TUPLES[name.removeprefix("to_")],)
        made = TUPLES[maker.removeprefix("to_")]
        written, result = kinds[0], f" -> {made}"
    part = kinds[PARTS[name, maker]]
    given = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(kinds))
    names = ", ".join(f"%a{i}" for i in range(len(kinds)))
    after = canonical(f"""func.func @f({given}) -> {part} {{
      %m = cute.{maker}({names}) : {written}{result}
      %p = cute.{name}(%m) : {made} -> {part}
      func.return %p : {part}
    }}""")
    assert "cute." + name + "(" not in after and "cute." + maker + "(" not in after
    assert f"func.return %a{PARTS[name, maker]} : " in after


def test_an_inner_block_takes_what_was_done_around_it_and_not_the_other_way() -> None:
    make = f"cute.make_shape(%m) : (i32) -> {SHAPE}"
    keep = f"cute.print(%{{0}}) : {SHAPE}"
    after = canonical(f"""func.func @f(%m: i32, %c: i1) {{
      scf.if %c {{
        %a = {make}
        {keep.format("a")}
      }}
      %b = {make}
      {keep.format("b")}
      scf.if %c {{
        %d = {make}
        {keep.format("d")}
      }}
      func.return
    }}""")
    assert after.count("cute.make_shape") == 2  # of the first block, and of all behind it
    assert after.count("cute.print") == 3


def test_what_differs_in_operands_or_types_stays() -> None:
    after = canonical(f"""func.func @f(%m: i32, %n: i32) {{
      %a = cute.make_shape(%m) : (i32) -> {SHAPE}
      %b = cute.make_shape(%n) : (i32) -> {SHAPE}
      %d = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,5)">
      cute.print(%a) : {SHAPE}
      cute.print(%b) : {SHAPE}
      cute.print(%d) : !cute.shape<"(?,5)">
      func.return
    }}""")
    assert after.count("cute.make_shape") == 3
