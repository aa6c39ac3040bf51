"""Composed layouts: parts, and elements of another width. Each result is also compared as a function."""

from __future__ import annotations

import pytest

from toolchain.cute.layout import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    recast_composed,
    slice_and_offset,
    slice_composed,
)
from toolchain.cute.layout.tuples import parse


@pytest.mark.parametrize(
    ("layout", "coordinate", "result"),
    [
        ("(4,5):(1,4) o 3 o (6,2):(1,6)", "(2,_)", "(4,5):(1,4) o 5 o (2):(6)"),
        ("(4,5):(1,4) o 3 o (6,2):(1,6)", "(?,_)", "(4,5):(1,4) o ? o (2):(6)"),
        ("(4,8):(1,4) o (0,1) o (2,3):(1@0,1@1)", "(_,2)", "(4,8):(1,4) o (0,3) o (2):(1@0)"),
        # The open mode reaches both bits of a pair: the swizzle stays, and keeps the mixed bits of the offset.
        ("S<2,1,2> o 0 o (4,16):(16,1)", "(3,_)", "S<2,1,2> o 16 o (16):(1)"),
        ("S<2,1,2> o 0 o (2,16):(16,1)", "(_,_)", "S<2,1,2> o 0 o (2,16):(16,1)"),
        ("S<2,1,2> o 0 o (8,2):(1,8)", "(_,1)", "((2,2,2)):((1,-2,4))"),
        # It reaches the upper bits alone: what each of them adds depends on the lower bits of the offset.
        ("S<1,0,2> o 0 o (2,8):(1,4)", "(1,_)", "((2,4)):((3,8))"),
        ("S<1,0,2> o 0 o (2,8):(1,4)", "(0,_)", "((2,4)):((5,8))"),
        ("S<1,0,2> o 0 o (2,8):(1,4)", "(?,_)", "((2,4)):((?,8))"),
        ("S<1,0,-2> o 0 o (2,4):(4,1)", "(1,_)", "((2,2)):((-3,2))"),
        # A step that is no power of two carries into the offset's bits.
        ("S<2,1,2> o 0 o (3,4):(16,3)", "(1,_)", "S<2,1,2> o 16 o (4):(3)"),
    ],
)
def test_the_part_at_a_coordinate(layout: str, coordinate: str, result: str) -> None:
    whole, where = ComposedLayout.parse(layout), parse(coordinate)
    made = slice_composed(whole, where)
    assert str(made) == result
    if "?" in coordinate:
        return
    # As a function: the part is the whole at the coordinate, less a number that is the same for all.
    opened, offset = slice_and_offset(whole.outer, where)
    indices = range(len(opened.offsets()))
    if isinstance(whole.inner, Swizzle):
        swizzle, start = whole.inner, whole.offset
        differences = {swizzle(start + offset + opened(i)) - made(i) for i in indices}
        assert len(differences) == 1
    else:
        assert [made(i) for i in indices] == [whole(tuple(i if w is None else w for w in where)) for i in indices]


@pytest.mark.parametrize(
    ("layout", "coordinate", "said"),
    [
        ("S<2,1,2> o 0 o (2,?):(16,1)", "(1,_)", "which bits its parts reach is not known"),
        ("S<2,1,2> o 0 o (2,4):(16,1)", "(1,2)", "leaves no mode of"),
        ("S<2,1,2> o 0 o (2,4):(16,1)", "(1,_,_)", "does not fit"),
    ],
)
def test_what_has_no_part_is_refused(layout: str, coordinate: str, said: str) -> None:
    with pytest.raises(LayoutError, match=said):
        slice_composed(ComposedLayout.parse(layout), parse(coordinate))


@pytest.mark.parametrize(
    ("layout", "new", "old", "result"),
    [
        ("S<2,4,3> o 16 o (32,8):(1,32)", 64, 8, "S<2,1,3> o 2 o (4,8):(1,4)"),
        ("S<2,1,3> o 2 o (4,8):(1,4)", 8, 64, "S<2,4,3> o 16 o (32,8):(1,32)"),
        ("(8,4):(1,8) o 4 o (8,2):(1,8)", 16, 8, "(4,4):(1,4) o 2 o (4,2):(1,4)"),
    ],
)
def test_elements_of_another_width(layout: str, new: int, old: int, result: str) -> None:
    assert str(recast_composed(ComposedLayout.parse(layout), new, old)) == result


@pytest.mark.parametrize(
    ("layout", "new", "said"),
    [
        ("S<2,1,3> o 0 o (32,8):(1,32)", 64, "mix the bits of an element"),
        ("S<2,4,3> o 3 o (32,8):(1,32)", 16, "no whole number of elements"),
        ("S<2,4,3> o 0 o (33,8):(1,33)", 24, "mix the bits of an element"),
    ],
)
def test_an_element_that_would_be_cut_is_refused(layout: str, new: int, said: str) -> None:
    with pytest.raises(LayoutError, match=said):
        recast_composed(ComposedLayout.parse(layout), new, 8)


def test_the_sum_of_an_offset_and_a_coordinate_is_taken_by_mode() -> None:
    layout = ComposedLayout(Layout.parse("(6,2):(1,8)"), (2, 1), Layout.parse("(2,3):(1@1,2@0)"))
    assert layout(4) == layout((0, 2)) == 6 + 8
