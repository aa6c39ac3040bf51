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
