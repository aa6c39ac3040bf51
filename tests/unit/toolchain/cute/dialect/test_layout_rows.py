"""Operations on layouts: results on the kinds of values that other tests do not have, and operands that are refused."""

from __future__ import annotations

import pytest

from toolchain.cute.parse import parse
from toolchain.errors import SourceError


def verified(op: str, operands: tuple[str, ...], form: str) -> str:
    """The module of an operation on values of these types; `form`: what stands behind its operands."""
    given = ", ".join(f"%a{i}: !cute.{kind}" for i, kind in enumerate(operands))
    names = ", ".join(f"%a{i}" for i in range(len(operands)))
    return str(parse(f"func.func @f({given}) {{\n%r = cute.{op}({names}) : {form}\nfunc.return\n}}", "k.mlir"))


def function(op: str, operands: tuple[str, ...], result: str) -> str:
    kinds = ", ".join(f"!cute.{kind}" for kind in operands)
    return verified(op, operands, f"({kinds}) -> !cute.{result}")


SWIZZLED = 'composed_layout<"S<2,4,3> o 0 o (16,8):(1,16)">'


@pytest.mark.parametrize(
    ("op", "operands", "result"),
    [
        # Coordinates: products follow along them, and a divide leaves the rest of each.
        ("logical_product", ('layout<"(4,3):(1@0,1@1)">', 'layout<"6:1">'), 'layout<"((4,3),6):((1@0,1@1),3@1)">'),
        ("logical_product", ('layout<"(4,3):(3@0,1@1)">', 'layout<"(3,2):(1,3)">'),
         'layout<"((4,3),(3,2)):((3@0,1@1),(1@0,3@1))">'),
        ("logical_divide", ('layout<"(64,32):(1@1,1@0)">', 'layout<"4:16@0">'),
         'layout<"(4,(16,32)):(16@1,(1@1,1@0))">'),
        # A padded block: copies stand behind its last column.
        ("logical_product", ('layout<"(4,6):(1,7)">', 'layout<"3:1">'), 'layout<"((4,6),3):((1,7),42)">'),
        # A tile within a tile.
        ("zipped_divide", ('layout<"((2,16),(4,8,2)):((1,2),(32,128,1024))">', 'tile<"[_;[2:1;4:1]]">'),
         'layout<"((2,(2,4)),(16,(2,2,2))):((1,(32,128)),(2,(64,512,1024)))">'),
        ("zipped_divide", ('layout<"((4,8),3):((8,1),32)">', 'shape<"((2),3)">'),
         'layout<"(((2),3),((2,8),1)):(((8),32),((16,1),96))">'),
        ("flat_divide", ('layout<"((4,8),3):((8,1),32)">', 'shape<"((2),3)">'),
         'layout<"((2),3,(2,8),1):((8),32,(16,1),96)">'),
        ("tile_to_shape", (SWIZZLED, 'shape<"(16,24)">'),
         'composed_layout<"S<2,4,3> o 0 o ((16,1),(8,3)):((1,0),(16,128))">'),
        ("ceil_div", ('shape<"(20,30)">', 'tile<"[8:1;(2,2):(1,4)]">'), 'shape<"(3,(2,4))">'),
        ("ceil_div", ('int_tuple<"(8,16)">', 'tile<"8:1">'), 'int_tuple<"16">'),
    ],
)  # fmt: skip
def test_results(op: str, operands: tuple[str, ...], result: str) -> None:
    assert f"-> !cute.{result}" in function(op, operands, result)


@pytest.mark.parametrize(
    ("op", "operands", "form"),
    [
        ("get_shape", ('tile<"[4:1;(2,3):(1,2)]">',), '!cute.tile<"[4:1;(2,3):(1,2)]"> -> !cute.shape<"(4,(2,3))">'),
        ("get<[1]> ", ('tile<"[4:1;(2,3):(1,2)]">',), '!cute.tile<"[4:1;(2,3):(1,2)]"> -> !cute.tile<"(2,3):(1,2)">'),
        ("get<[1]> ", (SWIZZLED,), f'!cute.{SWIZZLED} -> !cute.composed_layout<"S<2,4,3> o 0 o 8:16">'),
        ("recast_layout<32, 8> ", (SWIZZLED,),
         f'!cute.{SWIZZLED} -> !cute.composed_layout<"S<2,2,3> o 0 o (4,8):(1,4)">'),
        ("make_layout_like", (SWIZZLED,), f'!cute.{SWIZZLED} -> !cute.layout<"(16,8):(1,16)">'),
        ("make_layout_like", ('layout<"(?,2,3):(?,1,?)">',),
         '!cute.layout<"(?,2,3):(?,1,?)"> -> !cute.layout<"(?,2,3):(2,1,?)">'),
        ("dice", ('shape<"(2,(3,4))">', 'coord<"(_,1)">'), '!cute.shape<"(2,(3,4))">, !cute.coord<"(_,1)">'),
        ("slice", (SWIZZLED, 'coord<"(?,_)">'), f'!cute.{SWIZZLED}, !cute.coord<"(?,_)">'),
        ("composed_get_outer", (SWIZZLED,), '<"S<2,4,3> o 0 o (16,8):(1,16)"> -> <"(16,8):(1,16)">'),
    ],
)  # fmt: skip
def test_texts(op: str, operands: tuple[str, ...], form: str) -> None:
    assert f") : {form}" in verified(op, operands, form)


@pytest.mark.parametrize(
    ("op", "operands", "result", "said"),
    [
        ("make_layout", ('shape<"(?,2)">', 'shape<"(?,4)">'), 'layout<"(?,2):(?,4)">', "operand 1 is a cute.stride"),
        ("make_composed_layout", ('swizzle<"S<2,1,2>">', 'int_tuple<"0">', 'layout<"(4,2):(1@0,1@1)">'),
         'composed_layout<"4:1 o 0 o 4:1">', "a swizzle mixes the bits of a number"),
        ("make_ordered_layout", ('shape<"(4,8)">', 'int_tuple<"(?,0)">'), 'layout<"(4,8):(1,4)">', "must be known"),
        ("coalesce", (SWIZZLED, 'coord<"(1,1,1)">'), SWIZZLED, "has fewer modes than"),
        ("logical_product", ('layout<"(?,8):(1,4)">', 'layout<"2:1">'), 'layout<"((?,8),2):((1,4),?)">',
         "all numbers of the layout that is repeated must be known"),
        ("raked_product", ('layout<"8:1@0">', 'layout<"?:1">'), 'layout<"(8,?):(1@0,8@0)">', "a known number of times"),
        ("flat_product", ('layout<"8:1">', 'layout<"2:1@0">'), 'layout<"(8,2):(1,8)">', "not by coordinates"),
        ("logical_divide", ('layout<"8:1">', 'layout<"(2,2):(?,1)">'), 'layout<"8:1">', "has known strides"),
        ("tiled_divide", ('layout<"(8,8):(1,8)">', 'tile<"[2:1@0;_]">'), 'layout<"8:1">', "strides are numbers"),
        ("tile_to_shape", ('layout<"(2,2):(1,2)">', 'shape<"(4,4)">', 'int_tuple<"(0,2)">'), 'layout<"4:1">',
         "does not name each of 2 modes once"),
        ("tile_to_shape", ('layout<"(2,2):(1,2)">', 'shape<"(4,4)">', 'int_tuple<"(1,1)">'), 'layout<"4:1">',
         "does not name each of 2 modes once"),
        ("complement", ('layout<"(4,6):(1,7)">',), 'layout<"1:42">', "leaves a hole of 3 behind each 4"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(op: str, operands: tuple[str, ...], result: str, said: str) -> None:
    with pytest.raises(SourceError, match=rf"^k\.mlir:2:\d+: .*{said}"):
        function(op, operands, result)


@pytest.mark.parametrize(
    ("op", "operands", "form", "said"),
    [
        ("recast_layout<0, 8> ", ('layout<"8:1">',), '!cute.layout<"8:1"> -> !cute.layout<"8:1">', "at least 1 bit"),
        ("recast_layout<8, -8> ", ('layout<"8:1">',), '!cute.layout<"8:1"> -> !cute.layout<"8:1">', "at least 1 bit"),
        ("make_identity_layout", ('int_tuple<"4">',), '!cute.int_tuple<"4"> -> !cute.layout<"4:1">', "is a cute.shape"),
        ("make_layout_like", ('composed_layout<"4:1 o 0 o 4:1">',),
         '!cute.composed_layout<"4:1 o 0 o 4:1"> -> !cute.layout<"4:1">', "that of its inner layout"),
        ("get_shape", ('tile<"[4:1;_]">',), '!cute.tile<"[4:1;_]"> -> !cute.shape<"(4,1)">', "has no shape"),
        ("dice", ('layout<"(4,3):(1,4)">', 'coord<"(_,?)">'), '!cute.layout<"(4,3):(1,4)">, !cute.coord<"(_,?)">',
         "which modes are kept must be known"),
        ("dice", ('swizzle<"S<2,1,2>">', 'coord<"_">'), '!cute.swizzle<"S<2,1,2>">, !cute.coord<"_">',
         "it takes a tuple or a layout"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_in_other_forms(op: str, operands: tuple[str, ...], form: str, said: str) -> None:
    with pytest.raises(SourceError, match=rf"^k\.mlir:2:\d+: .*{said}"):
        verified(op, operands, form)
