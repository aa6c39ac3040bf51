"""Ranks that are filled, of every kind of value."""

from __future__ import annotations

import pytest

from toolchain.cute.parse import parse
from toolchain.errors import SourceError


def appended(value: str, filler: str, rank: int, *, prepend: bool = False) -> str:
    """The type of the result for operands of two types."""
    name = "prepend_to_rank" if prepend else "append_to_rank"
    operands = f"%a = cute.static : !cute.{value}\n%e = cute.static : !cute.{filler}\n"
    module = parse(f"{operands}%r = cute.{name}<{rank}> (%a, %e) : !cute.{value}, !cute.{filler}")
    return str(module.body.block.last_op.results[0].type)  # pyright: ignore[reportOptionalMemberAccess]


# Facts of NVIDIA's published CuTe IR.
@pytest.mark.parametrize(
    ("value", "filler", "rank", "result"),
    [
        ('composed_layout<"S<3,4,3> o 0 o (4,8):(1,4)">', 'layout<"1:0">', 3,
         '!cute.composed_layout<"S<3,4,3> o 0 o (4,8,1):(1,4,0)">'),
        ('layout<"(4,8):(1,4)">', 'layout<"(1,2):(1,0)">', 4, '!cute.layout<"(4,8,(1,2),(1,2)):(1,4,(1,0),(1,0))">'),
        ('layout<"(4,8):(1,4)">', 'layout<"1:0">', 1, '!cute.layout<"(4,8):(1,4)">'),
        ('shape<"(4,8,2)">', 'shape<"1">', 2, '!cute.shape<"(4,8,2)">'),
        ('stride<"(4,2)">', 'stride<"0">', 4, '!cute.stride<"(4,2,0,0)">'),
    ],
)  # fmt: skip
def test_a_rank_is_filled(value: str, filler: str, rank: int, result: str) -> None:
    assert appended(value, filler, rank) == result


def test_a_composed_layout_is_filled_in_front() -> None:
    made = appended('composed_layout<"S<1,4,3> o 5 o (1,2):(3,4)">', 'layout<"(1,2):(1,0)">', 3, prepend=True)
    assert made == '!cute.composed_layout<"S<1,4,3> o 5 o ((1,2),1,2):((1,0),3,4)">'


@pytest.mark.parametrize(
    ("value", "filler", "rank", "said"),
    [
        ('shape<"(4,8)">', 'shape<"1">', -5, "-5 is no number of modes"),
        ('shape<"(4,8)">', 'int_tuple<"1">', 3, "two tuples of one kind"),
        ('swizzle<"S<3,4,3>">', 'int_tuple<"1">', 3, "two tuples of one kind"),
        ('layout<"4:1">', 'shape<"1">', 3, "filled with a layout"),
    ],
)
def test_other_kinds_are_refused(value: str, filler: str, rank: int, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        appended(value, filler, rank)


@pytest.mark.parametrize(
    ("op", "operands", "result"),
    [
        ("tuple_product", ('shape<"(2,(3,?))">',), 'shape<"?">'),
        ("tuple_product", ('int_tuple<"(2,3)">',), 'int_tuple<"6">'),
        ("tuple_product_each", ('shape<"7">',), 'shape<"(7)">'),
        ("tuple_product_each", ('shape<"((2,5),3)">',), 'shape<"(10,3)">'),
        ("tuple_sub", ('shape<"(9,8)">', 'shape<"(2,3,4)">'), 'shape<"(7,5,4)">'),
        ("layout_eval", ('coord<"(_,2)">', 'layout<"(4,8):(1,4)">'), 'int_tuple<"8">'),
        ("layout_eval", ('coord<"?">', 'composed_layout<"S<1,4,3> o 0 o 64:8">'), 'int_tuple<"?">'),
        (
            "layout_eval",
            ('coord<"(1,1)">', 'composed_layout<"(5,3):(1,9) o (1,1) o (2,3):(1@1,2@0)">'),
            'int_tuple<"21">',
        ),
    ],
)
def test_results_have_the_kind_of_the_operand(op: str, operands: tuple[str, ...], result: str) -> None:
    assert f"-> !cute.{result}" in applied(op, operands, result)


@pytest.mark.parametrize(
    ("op", "operands", "result", "said"),
    [
        ("tuple_product", ('shape<"(2,3)">',), 'int_tuple<"6">', "the result is !cute.shape"),
        (
            "tuple_product_each",
            ('coord<"(2,3)">',),
            'int_tuple<"(2,3)">',
            "is a cute.int_tuple or cute.shape",
        ),
        ("tuple_add", ('int_tuple<"(3,4)">', 'shape<"(1,2)">'), 'int_tuple<"(4,6)">', "are of two kinds"),
        ("ceil_div", ('int_tuple<"(7,4)">', 'int_tuple<"(2,0)">'), 'int_tuple<"(4,?)">', "tiles of 0"),
        ("crd2idx", ('int_tuple<"(1,2)">', 'shape<"(4,8)">'), 'int_tuple<"9">', "operand 0 is a cute.coord"),
        ("layout_eval", ('int_tuple<"1">', 'layout<"4:1">'), 'int_tuple<"1">', "operand 0 is a cute.coord"),
        ("cosize", ('composed_layout<"(2,3):(1,2) o 0 o (4,5):(1,4)">',), 'int_tuple<"20">', "is not defined"),
        ("size <[1, 0]>", ('layout<"(4,3):(1,4)">',), 'int_tuple<"3">', r"\[1\] is one number"),
        ("cosize <[2]>", ('layout<"(4,3):(1,4)">',), 'int_tuple<"3">', r"2 is not in \[0, 2\)"),
        ("increment_coord", ('coord<"(_,1)">', 'shape<"(2,3)">'), 'coord<"(_,1)">', "not nested alike"),
    ],
)
def test_what_is_wrong_is_refused(op: str, operands: tuple[str, ...], result: str, said: str) -> None:
    with pytest.raises(SourceError, match=rf"^k\.mlir:2:\d+: .*{said}"):
        applied(op, operands, result)


def applied(op: str, operands: tuple[str, ...], result: str) -> str:
    """The module of an operation whose text names all types."""
    kinds = [f"!cute.{kind}" for kind in operands]
    given = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(kinds))
    names = ", ".join(f"%a{i}" for i in range(len(kinds)))
    line = f"%r = cute.{op}({names}) : ({', '.join(kinds)}) -> !cute.{result}"
    return str(parse(f"func.func @f({given}) {{\n{line}\nfunc.return\n}}", "k.mlir"))
