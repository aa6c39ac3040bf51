from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from toolchain.cute.parse import parse
from toolchain.errors import SourceError


def kind(text: str) -> str:
    """The type as it is printed, from a function that takes it."""
    function = next(iter(parse(f"func.func private @f(!cute.{text}) -> ()").body.ops))
    assert isinstance(function, FuncOp)
    return str(function.function_type.inputs.data[0])


@pytest.mark.parametrize(
    "text",
    [
        'layout<"(4,(2,?{div=4})):(2,(1,8))">',
        'shape<"(?,64)">',
        'stride<"(1@0,?@1)">',
        'coord<"(1,_)">',
        'int_tuple<"?{i64 div=16}">',
        'stride<"(0,1@0)">',
        'tile<"[(2,3):(1,2);_]">',
        'tile<"(2,3):(1,2)">',
        'composed_layout<"S<3,5,4> o 0 o (8,4):(1,8)">',
        'composed_layout<"(4,5):(1,4) o 2 o (2,3):(1,2)">',
        'swizzle<"S<0,4,3>">',
    ],
)
def test_a_type_is_printed_as_it_is_read(text: str) -> None:
    assert kind(text) == f"!cute.{text}"


@pytest.mark.parametrize(
    ("older", "text"),
    [
        ("layout<(64,128),(1,64)>", 'layout<"(64,128):(1,64)">'),
        ("layout<((2,4),?),((1,2),8)>", 'layout<"((2,4),?):((1,2),8)">'),
        ("layout<(64,128):(1,64)>", 'layout<"(64,128):(1,64)">'),
        ("layout<(?,64):(?{i64 div=8},1)>", 'layout<"(?,64):(?{i64 div=8},1)">'),
        ("shape<(64,?)>", 'shape<"(64,?)">'),
        ("coord<(0,(_,?))>", 'coord<"(0,(_,?))">'),
        ("tile<[64,(2,4):(4,1),_]>", 'tile<"[64:1;(2,4):(4,1);_]">'),
        ("swizzle<S<3,4,3>>", 'swizzle<"S<3,4,3>">'),
        ("composed_layout<S<3,4,3> o 0 o (8,64):(64,1)>", 'composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">'),
        (
            "memref<bf16, smem, align<128>, S<3,4,3>, (64,64):(64,1)>",
            'memref<bf16, smem, align<128>, S<3,4,3>, "(64,64):(64,1)">',
        ),
        ('layout<"(4,2)">', 'layout<"(4,2):(1,4)">'),
    ],
)
def test_older_and_shorter_texts_are_read_too(older: str, text: str) -> None:
    assert kind(older) == f"!cute.{text}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('layout<"(4,2):(1)">', "not nested alike"),
        ('swizzle<"S<3,0,1>">', "overlap"),
        ('tile<"(2,3)">', "a tile is written"),
        ('composed_layout<"S<1,0,1> o 4:1">', "inner o offset o outer"),
        ("layout<32>", "expected a value in quotes"),
        ("shape<-1>", "expected a value in quotes"),
        ('int_tuple<"(2,_)">', "`_` stands in a coordinate alone"),
        ('shape<"(2,1@0)">', "a step along a coordinate stands in a stride alone"),
        ('coord<"(_,1@0)">', "a step along a coordinate stands in a stride alone"),
        ('stride<"(1,2@0)">', "strides are all numbers, or all steps"),
        ('layout<"(2,3):(?,1@1)">', "strides are all numbers, or all steps"),
        ('tile<"[(2,3):(1,1@1);_]">', "strides are all numbers, or all steps"),
        ('stride<"((1@0@0,1@0@1),2@1)">', "steps along a coordinate and along a part of it"),
        ('layout<"(2,3):(1@0,1@2@0)">', "steps along a coordinate and along a part of it"),
        ('swizzle<"S<4,25,4>">', "the upper field ends beyond 32 bits"),
        ('composed_layout<"S<2,1,2> o 0 o (4,2):(1@0,1@1)">', "a swizzle mixes the bits of a number"),
        ('composed_layout<"S<2,1,2> o (1,2) o 4:1">', "a swizzle mixes the bits of a number"),
        ('composed_layout<"(4,2):(1,4) o 3 o (2,3):(1@1,2@0)">', "are not of one kind"),
        ('composed_layout<"(4,2):(1,4) o 0 o (2,2):(1@0@0,1@1@0)">', "is no coordinate of"),
        ('composed_layout<"(4,2):(1,1@0) o 0 o 4:1">', "strides are all numbers, or all steps"),
    ],
)
def test_what_is_no_type_is_named_by_file_line_and_column(text: str, said: str) -> None:
    with pytest.raises(SourceError, match=rf"^k\.mlir:2:\d+: .*{said}"):
        parse(f"\nfunc.func private @f(!cute.{text}) -> ()", "k.mlir")


@pytest.mark.parametrize(
    "text",
    [
        'layout<"(?,8):(1,?)">', 'shape<"((2,3),4)">', 'stride<"(1@0,1@1)">', 'coord<"(_,1)">', 'int_tuple<"?">',
        'tile<"[(2,3):(1,2);_]">', 'composed_layout<"S<2,4,3> o 0 o (8,4):(1,8)">', 'swizzle<"S<2,4,3>">',
    ],
)  # fmt: skip
def test_a_value_is_an_attribute_too(text: str) -> None:
    module = f"func.func private @f() -> () attributes {{here = #cute.{text}}}"
    assert f"here = #cute.{text}" in str(parse(module))
    assert str(parse(str(parse(module)))) == str(parse(module))


def test_an_attribute_that_is_no_value_is_refused() -> None:
    with pytest.raises(SourceError, match="not nested alike"):
        parse('func.func private @f() -> () attributes {here = #cute.layout<"(4,2):1">}')
