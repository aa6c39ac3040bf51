from __future__ import annotations

import pytest

from toolchain.cute.dialect import CUTE
from toolchain.cute.parse import parse
from toolchain.errors import SourceError

A, B = '!cute.layout<"(6,2):(8,2)">', '!cute.layout<"(4,3):(3,1)">'
STATIC = f"%a = cute.static : {A}\n%b = cute.static : {B}\n"
# One text for each operation, in NVIDIA's form, after %a, %b and the values of OTHERS.
OTHERS = """
%c = cute.static : !cute.coord<"(0,_)">
%s = cute.static : !cute.shape<"(3,2)">
%i = cute.static : !cute.int_tuple<"(2,(3,4))">
%k = cute.static : !cute.composed_layout<"S<1,0,1> o 2 o (2,3):(1,2)">
%one = cute.static : !cute.shape<"1">
%n = arith.constant 7 : i32
%w = arith.constant 7 : i64
"""
TEXTS = [
    f'%r = cute.composition(%a, %b) : ({A}, {B}) -> !cute.layout<"((2,2),3):((24,2),8)">',
    f'%r = cute.composition(%a, %s) : ({A}, !cute.shape<"(3,2)">) -> !cute.layout<"(3,2):(8,2)">',
    f'%r = cute.coalesce(%b) : ({B}) -> !cute.layout<"(4,3):(3,1)">',
    f'%r = cute.complement(%b) : ({B}) -> !cute.layout<"1:12">',
    f'%r = cute.right_inverse(%b) : ({B}) -> !cute.layout<"(3,4):(4,1)">',
    f'%r = cute.left_inverse(%b) : ({B}) -> !cute.layout<"(3,4):(4,1)">',
    f'%r = cute.logical_divide(%a, %s) : ({A}, !cute.shape<"(3,2)">) -> !cute.layout<"((3,2),(2,1)):((8,24),(2,4))">',
    f'%r = cute.logical_product(%b, %b) : ({B}, {B}) -> !cute.layout<"((4,3),(4,3)):((3,1),(36,12))">',
    f'%r = cute.slice(%a, %c) : {A}, !cute.coord<"(0,_)">',
    f'%r = cute.dice(%a, %c) : {A}, !cute.coord<"(0,_)">',
    f'%r = cute.group_modes<0, 2> (%a) : ({A}) -> !cute.layout<"((6,2)):((8,2))">',
    f'%r = cute.get<[1]> (%a) : {A} -> !cute.layout<"2:2">',
    f'%r = cute.select<[1, 0]> (%a) : {A} -> !cute.layout<"(2,6):(2,8)">',
    f'%r = cute.get_shape(%a) : {A} -> !cute.shape<"(6,2)">',
    '%r = cute.get_stride(%a) : <"(6,2):(8,2)"> -> !cute.stride<"(8,2)">',
    f'%r = cute.size (%a) : ({A}) -> !cute.int_tuple<"12">',
    f'%r = cute.size<[1]> (%a) : ({A}) -> !cute.int_tuple<"2">',
    f'%r = cute.cosize (%a) : ({A}) -> !cute.int_tuple<"43">',
    '%r = cute.tuple_product(%i) : (!cute.int_tuple<"(2,(3,4))">) -> !cute.int_tuple<"24">',
    '%r = cute.tuple_product_each(%i) : (!cute.int_tuple<"(2,(3,4))">) -> !cute.int_tuple<"(2,12)">',
    '%r = cute.append_to_rank<4> (%s, %one) : !cute.shape<"(3,2)">, !cute.shape<"1">',
    '%r = cute.composed_get_inner(%k) : <"S<1,0,1> o 2 o (2,3):(1,2)"> -> !cute.swizzle<"S<1,0,1>">',
    f"%r, %q, %p, %o = cute.get_scalars (%a) : {A}",
    '%r = cute.make_identity_layout(%s) : !cute.shape<"(3,2)"> -> !cute.layout<"(3,2):(1@0,1@1)">',
    f'%r = cute.make_layout_like(%a) : {A} -> !cute.layout<"(6,2):(2,1)">',
    '%r = cute.ceil_div(%s, %one) : (!cute.shape<"(3,2)">, !cute.shape<"1">) -> !cute.shape<"(3,2)">',
    '%r = cute.equal(%s, %one) : (!cute.shape<"(3,2)">, !cute.shape<"1">) -> i1',
    '%r = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,2)">',
    '%r = cute.make_coord(%n, %n) : (i32, i32) -> !cute.coord<"(?,(_,?))">',
    f'%r = cute.coalesce(%b) {{here = 1 : i64}} : ({B}) -> !cute.layout<"(4,3):(3,1)">',
]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.split(" = ")[1].split("(")[0])
def test_an_operation_is_printed_as_it_is_read(text: str) -> None:
    module = parse(STATIC + OTHERS + text)
    assert text in str(module)
    assert str(parse(str(module))) == str(module)


# NVIDIA's operations; the rest are those of tensors and atoms, which it has not published.
NVIDIA = {
    *(f"{how}_divide" for how in ("logical", "zipped", "tiled", "flat")),
    *(f"{how}_product" for how in ("logical", "zipped", "tiled", "flat", "blocked", "raked")),
    *(f"make_{what}" for what in ("layout", "composed_layout", "shape", "stride", "coord", "tile", "int_tuple",
                                  "identity_layout", "layout_like", "ordered_layout")),
    *(f"to_{kind}" for kind in ("coord", "int_tuple", "shape", "stride")),
    *(f"composed_get_{part}" for part in ("inner", "offset", "outer")),
    *(f"get{what}" for what in ("", "_shape", "_stride", "_scalars", "_leaves", "_layouts_from_tile")),
    *(f"tuple_{how}" for how in ("add", "sub", "product", "product_each")),
    "static", "print", "select", "ceil_div", "elem_less", "equal", "shape_div", "coalesce", "complement", "composition",
    "dice", "flatten", "group_modes", "left_inverse", "recast_layout", "right_inverse", "slice", "append_to_rank",
    "cosize", "crd2idx", "idx2crd", "increment_coord", "layout_eval", "prepend_to_rank", "size", "tile_to_shape",
}  # fmt: skip


def test_the_dialect_has_nvidia_s_operations() -> None:
    assert len(NVIDIA) == 63
    assert {f"cute.{name}" for name in NVIDIA} <= {op.name for op in CUTE.operations}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'%r = cute.composition(%a, %b) : ({A}, {B}) -> !cute.layout<"4:1">', r"the result is .*\(\(2,2\),3\)"),
        (f'%r = cute.slice(%a, %i) : {A}, !cute.int_tuple<"(2,(3,4))">', "operand 1 is a cute.coord"),
        (f"%r = cute.composition(%a) : ({A}) -> {A}", "takes 2 to 2 operands|wrong kind"),
        ('%r = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,?)">', "has 2 numbers to fill"),
        ('%r = cute.make_shape(%w) : (i64) -> !cute.shape<"(?,2)">', "operand 0 is i64, and the number is an i32"),
        ('%r = cute.static : !cute.shape<"(?,2)">', "not known"),
        (f'%r = cute.equal(%s, %a) : (!cute.shape<"(3,2)">, {A}) -> i1', "two kinds"),
        ('%r = cute.elem_less(%s, %one) : (!cute.shape<"(3,2)">, !cute.shape<"1">) -> i1', "not nested alike"),
        (f'%r = cute.get<[5]> (%a) : {A} -> !cute.layout<"2:2">', r"has no part \[5\]"),
    ],
)
def test_an_operation_that_is_wrong_is_refused_with_its_reason(text: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        parse(STATIC + OTHERS + text, "k.mlir")
