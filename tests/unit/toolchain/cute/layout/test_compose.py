from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from tests.unit.toolchain.cute.layout.strategies import layouts
from toolchain.cute.layout import Layout, LayoutError, composition, size

# Facts of NVIDIA's published CuTe IR: outer, inner, result.
COMPOSED = [
    ("(20):(2)", "(5,4):(4,1)", "(5,4):(8,2)"),
    ("(4,8):(1,4)", "(2,4):(1,2)", "(2,4):(1,2)"),
    ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
    ("(4,6,8,10):(2,3,5,7)", "6:12", "(2,3):(9,5)"),
    ("(8,8):(8,1)", "2:3", "2:24"),
    ("(8,8):(8,1)", "3:3", "3:24"),
    ("(4,6,8):(1,4,7)", "6:1", "6:1"),
    ("(4,3,1):(3,1,0)", "4:1", "4:3"),
    ("1:0", "1:0", "1:0"),
    ("1:0", "1:1", "1:0"),
    ("1:1", "1:0", "1:0"),
    ("1:1", "1:1", "1:1"),
    ("4:1", "4:1", "4:1"),
    ("(4,8):(1,4)", "(2,4):(1,?)", "(2,4):(1,?)"),
    ("(20):(2)", "(?,4):(4,1)", "(?,4):(8,2)"),
    ("(8):(2)", "(?):(?)", "(?):(?)"),
]
# Layout, cotarget, result.


def _plain(layout: Layout) -> str:
    """Without divisibilities: we derive more of them than the published results state."""
    return re.sub(r"\{[^}]*\}", "", str(layout))


@pytest.mark.parametrize(("outer", "inner", "result"), COMPOSED)
def test_composition(outer: str, inner: str, result: str) -> None:
    assert _plain(composition(Layout.parse(outer), Layout.parse(inner))) == result


def test_a_tile_composes_mode_by_mode() -> None:
    made = composition(Layout.parse("(6,4):(4,1)"), (Layout.parse("(2):(1)"), Layout.parse("(2):(1)")))
    assert str(made) == "((2),(2)):((4),(1))"
    assert str(composition(Layout.parse("(4,8):(1,4)"), (2, 4))) == "(2,4):(1,4)"
    with pytest.raises(LayoutError, match="does not fit"):
        composition(Layout.parse("4:1"), (2, 2))


def test_modes_that_a_tile_does_not_name_are_dropped() -> None:
    assert str(composition(Layout.parse("(4,8):(1,4)"), (Layout.parse("(2,2):(1,2)"),))) == "((2,2)):((1,2))"
    assert str(composition(Layout.parse("(2,6):(4,8)"), (Layout.parse("2:1"),))) == "(2):(4)"
    assert str(composition(Layout.parse("(2,6):(4,8)"), (None,))) == "(2):(4)"


# What CuTe's C++ headers give: outer, inner, result.
ALONG_COORDINATES = [
    ("(4,8):(1,4)", "(2,3):(1@0,1@1)", "(2,3):(1,4)"),
    ("(8,16):(1,8)", "(16,8):(1@1,1@0)", "(16,8):(8,1)"),
    ("(8,16):(1,8)", "(4,16):(2@0,1@1)", "(4,16):(2,8)"),
    ("(8,16):(1,10)", "(16,8):(1@1,1@0)", "(16,8):(10,1)"),
    ("(8,16):(1@0,1@1)", "(16,8):(1@1,1@0)", "(16,8):(1@1,1@0)"),
    ("((2,4),8):((8,1),16)", "(8,8):(1@1,1@0)", "(8,(2,4)):(16,(8,1))"),
    ("((2,4),8):((8,1),16)", "(4,8):(1@1@0,1@1)", "(4,8):(1,16)"),
    ("(4096,8192):(1,4096)", "(32,1024,8,128):(1@0,8@1,1@1,32@0)", "(32,1024,8,128):(1,32768,4096,32)"),
    ("(4096,8192):(1,4096)", "(32,?,8,128):(1@0,8@1,1@1,32@0)", "(32,?,8,128):(1,32768,4096,32)"),
    ("(4,?):(1,?)", "(2,3):(2@0,?@1)", "(2,3):(2,?)"),
    ("(?,3):(1,?)", "2:-1", "(?,?):(-1,?)"),
]
# The same: an index beyond the outer layout's size goes on in its last mode, whatever that mode's size.
BEYOND = [
    ("(4,1):(1,50)", "(2,2):(1,4)", "(2,2):(1,50)"),
    ("(4,1):(2,16)", "(4):(2)", "((2,2)):((4,16))"),
    ("(4,3,1):(3,1,0)", "(24):(1)", "((4,3,2)):((3,1,0))"),
    ("(4,1,1):(1,50,70)", "(2,2):(1,4)", "(2,2):(1,70)"),
    ("(4,1):(1,4)", "8:1", "8:1"),
    ("(4,3):(3,1)", "24:1", "(4,6):(3,1)"),
]
DOWN = [
    ("(4,2):(1,10)", "4:-1", "4:-1"),
    ("(4,2):(1,10)", "8:-1", "(4,2):(-1,-10)"),
    ("(4,2):(1@0,1@1)", "8:-1", "(4,2):(-1@0,-1@1)"),
]


@pytest.mark.parametrize(("outer", "inner", "result"), [*ALONG_COORDINATES, *BEYOND, *DOWN])
def test_a_composition_is_the_outer_layout_of_the_inner_one(outer: str, inner: str, result: str) -> None:
    a, b = Layout.parse(outer), Layout.parse(inner)
    made = composition(a, b)
    assert _plain(made) == result
    if "?" not in outer + inner:
        indices = range(0, size(b), 1 + size(b) // 500)
        assert [made(i) for i in indices] == [a(b(i)) for i in indices]


@settings(max_examples=300)
@given(layouts(-4), layouts(-4))
def test_a_composition_is_right_or_refused(outer: Layout, inner: Layout) -> None:
    try:
        made = composition(outer, inner)
    except LayoutError:
        return
    assert [made(i) for i in range(size(inner))] == [outer(inner(i)) for i in range(size(inner))]


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("(4,2):(1,13)", "(2,2):(1,3)"),
        ("(12,2):(1,13)", "(3,3):(4,3)"),
        ("(8,2):(1,100)", "(2,2,2):(1,2,6)"),
        ("(4,2,9):(1,13,2)", "(2,(2,2)):(1,(4,3))"),
        ("((4,2),5):((1,13),100)", "((2,2),5):((1@0,3@0),1@1)"),
    ],
)
def test_modes_that_carry_together_are_refused(outer: str, inner: str) -> None:
    with pytest.raises(LayoutError, match=r"its modes together carry from a mode of \d+:1 into the next, (13|100)"):
        composition(Layout.parse(outer), Layout.parse(inner))


def test_steps_up_and_down_that_borrow_are_refused() -> None:
    with pytest.raises(LayoutError, match="borrow from one another"):
        composition(Layout.parse("(4,2):(1,10)"), Layout.parse("(2,2):(4,-1)"))
    assert str(composition(Layout.parse("(4,2):(1,10)"), Layout.parse("(4,2):(1,-1)"))) == "(4,2):(1,-1)"


@pytest.mark.parametrize(
    ("outer", "inner", "said"),
    [
        ("(4,8):(1,4)", "(2,3):(1@0,1@2)", "has no mode that the second steps along"),
        ("(4,8):(1,4)", "(2,3):(1@0@0,1@1)", "has no mode that the second steps along"),
        ("8:1", "4:1@0", "has no mode that the second steps along"),
        ("(4,8):(1,4)", "(2,3):(1@0,1)", "adds a number and a coordinate"),
        ("((2,2),8):((1,2),4)", "(2,3):(1@0,1@1@0)", "adds a number and a coordinate"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(outer: str, inner: str, said: str) -> None:
    with pytest.raises(LayoutError, match=said):
        composition(Layout.parse(outer), Layout.parse(inner))


@given(layouts())
def test_the_composition_with_its_own_shape_is_the_layout_itself(layout: Layout) -> None:
    made = composition(layout, Layout(layout.shape))
    assert [made(i) for i in range(size(layout))] == [layout(i) for i in range(size(layout))]


def test_steps_that_do_not_fit_a_mode_are_refused() -> None:
    with pytest.raises(LayoutError, match=r"\(8,8\):\(8,1\) o 4:3 is no layout: steps of 3 do not fit a mode of 8"):
        composition(Layout.parse("(8,8):(8,1)"), Layout.parse("4:3"))
