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
        'tile<"[(2,3):(1,2);_]">',
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
    ],
)
def test_what_is_no_type_is_named_by_file_line_and_column(text: str, said: str) -> None:
    with pytest.raises(SourceError, match=rf"^k\.mlir:2:\d+: .*{said}"):
        parse(f"\nfunc.func private @f(!cute.{text}) -> ()", "k.mlir")
