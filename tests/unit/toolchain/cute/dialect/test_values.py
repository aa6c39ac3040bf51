"""Numbers that go into values and come out again: their number, widths and kinds."""

from __future__ import annotations

import pytest

from toolchain.cute.parse import parse
from toolchain.errors import SourceError


@pytest.mark.parametrize(
    ("kind", "dynamic", "all_of_them"),
    [
        ('layout<"(?{i64},8):(1,?)">', ["i64", "i32"], ["i64", "i32", "i32", "i32"]),
        ('stride<"(?@0,2@1)">', ["i32"], ["i32", "i32", "i32", "i32"]),
        ('stride<"?{i64}@1@0">', ["i64"], ["i64", "i32", "i32"]),
        ('swizzle<"S<2,4,3>">', [], ["i32", "i32", "i32"]),
        ('composed_layout<"S<2,4,3> o ? o (4,?):(1,4)">', ["i32", "i32"], ["i32"] * 8),
        ('tile<"[(?,4):(1,?);_]">', ["i32", "i32"], ["i32"] * 4),
        ('coord<"(_,?)">', ["i32"], ["i32"]),
    ],
)
def test_the_numbers_of_a_value(kind: str, dynamic: list[str], all_of_them: list[str]) -> None:
    for asked, wanted in (("<{only_dynamic}>", dynamic), ("", all_of_them)):
        names = ", ".join(f"%r{i}" for i in range(len(wanted)))
        line = f"{names} = " * bool(names) + f"cute.get_scalars{asked} (%a) : !cute.{kind}"
        back = f"func.return {names} : {', '.join(wanted)}" if names else "func.return"
        result = f"-> ({', '.join(wanted)})"
        text = f"func.func @f(%a: !cute.{kind}) {result} {{\n{line}\n{back}\n}}"
        assert line in str(parse(text))


@pytest.mark.parametrize(
    ("operands", "result"),
    [
        (("i64", "i32"), 'shape<"(?{i64},?)">'),
        (('!cute.int_tuple<"?">', "i32"), 'coord<"(?,?)">'),
        (('!cute.int_tuple<"?{i64}">',), 'int_tuple<"(4,?{i64})">'),
        (('!cute.int_tuple<"4">',), 'stride<"?">'),
        (('!cute.int_tuple<"?">',), 'tile<"[?:1;3:1]">'),
    ],
)
def test_a_number_is_an_integer_of_its_width_or_a_tuple_of_one_leaf(operands: tuple[str, ...], result: str) -> None:
    assert f"-> !cute.{result}" in made(operands, result)


@pytest.mark.parametrize(
    ("operands", "result", "said"),
    [
        (("i64",), 'shape<"?">', "operand 0 is i64, and the number is an i32"),
        (("i32",), 'shape<"?{i64}">', "operand 0 is i32, and the number is an i64"),
        (('!cute.int_tuple<"?{i64}">',), 'shape<"?">', "and the number is an i32"),
        (('!cute.int_tuple<"(?,?)">',), 'shape<"?">', "and the number is an i32"),
        (("f32",), 'shape<"?">', "and the number is an i32"),
        (("i32", "i32"), 'coord<"(?,_)">', "has 1 numbers to fill, and there are 2"),
    ],
)
def test_other_numbers_are_refused(operands: tuple[str, ...], result: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        made(operands, result)


def made(operands: tuple[str, ...], result: str) -> str:
    given = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(operands))
    names = ", ".join(f"%a{i}" for i in range(len(operands)))
    name = result.partition("<")[0]
    line = f"%r = cute.make_{name}({names}) : ({', '.join(operands)}) -> !cute.{result}"
    return str(parse(f"func.func @f({given}) {{\n{line}\nfunc.return\n}}"))


@pytest.mark.parametrize("kind", ['composed_layout<"4:1 o 0 o 4:1">', 'swizzle<"S<2,4,3>">', 'tile<"[4:1]">'])
def test_only_numbers_are_compared(kind: str) -> None:
    for name in ("equal", "elem_less"):
        with pytest.raises(SourceError, match="which is not compared"):
            parse(
                f"func.func @f(%a: !cute.{kind}) {{\n"
                f"%r = cute.{name}(%a, %a) : (!cute.{kind}, !cute.{kind}) -> i1\nfunc.return\n}}"
            )
