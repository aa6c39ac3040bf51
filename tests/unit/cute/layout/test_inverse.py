from __future__ import annotations

import pytest
from hypothesis import given

from tests.unit.cute.layout.strategies import bijections, injections
from toolchain.cute.layout import Layout, LayoutError, left_inverse, right_inverse, size

# Facts of NVIDIA's published CuTe IR: layout, right inverse, left inverse.
INVERSES = [
    ("(4,3):(1,4)", "12:1", "12:1"),
    ("(4,3):(3,1)", "(3,4):(4,1)", "(3,4):(4,1)"),
    ("8:1", "8:1", "8:1"),
    ("4:0", "1:0", "1:0"),
    ("(2,4):(4,1)", "(4,2):(2,1)", "(4,2):(2,1)"),
    ("((2,4),(3,5)):((4,1),(2,8))", "(4,2,5):(2,1,24)", "(2,2,2,5):(2,8,1,24)"),
    ("((2,4),3):((1,2),8)", "24:1", "24:1"),
    ("4:2", "1:0", "(2,4):(0,1)"),
    ("4:4", "1:0", "(4,4):(0,1)"),
    ("(8,4):(1,8)", "32:1", "32:1"),
    ("(4,2):(1,16)", "4:1", "(16,2):(1,4)"),
    ("(4,2):(1,5)", "4:1", "(5,2):(1,4)"),
    ("(2,4,6):(4,1,8)", "(4,2,6):(2,1,8)", "(4,2,6):(2,1,8)"),
    ("1:0", "1:0", "1:0"),
    ("1:1", "1:0", "1:0"),
    ("1:4", "1:0", "1:0"),
    ("(1,1):(0,0)", "1:0", "1:0"),
    ("(3,7):(0,0)", "1:0", "1:0"),
]


@pytest.mark.parametrize(("layout", "right", "left"), INVERSES)
def test_inverses(layout: str, right: str, left: str) -> None:
    assert str(right_inverse(Layout.parse(layout))) == right
    assert str(left_inverse(Layout.parse(layout))) == left


def test_modes_of_stride_0_take_part_in_neither() -> None:
    assert str(right_inverse(Layout.parse("(2,4,4,6):(4,1,0,8)"))) == "(4,2,6):(2,1,32)"
    assert str(right_inverse(Layout.parse("(32,128):(0,1)"))) == "128:32"
    assert str(left_inverse(Layout.parse("(2,4,8):(32,0,2)"))) == "(2,16,2):(0,8,1)"


@given(bijections())
def test_a_bijection_has_one_inverse_on_both_sides(layout: Layout) -> None:
    right, left = right_inverse(layout), left_inverse(layout)
    for i in range(size(layout)):
        assert layout(right(i)) == i
        assert left(layout(i)) == i


@given(injections())
def test_a_right_inverse_leads_back_as_far_as_it_goes(layout: Layout) -> None:
    inverse = right_inverse(layout)
    assert [layout(inverse(j)) for j in range(size(inverse))] == list(range(size(inverse)))


@given(injections())
def test_a_left_inverse_leads_back_to_each_index(layout: Layout) -> None:
    inverse = left_inverse(layout)
    assert [inverse(layout(i)) for i in range(size(layout))] == list(range(size(layout)))


@pytest.mark.parametrize("layout", ["(4,?):(1,4)", "(2,3):(1@0,1@1)"])
def test_numbers_that_are_not_known_have_no_inverse(layout: str) -> None:
    with pytest.raises(LayoutError, match="known integers"):
        right_inverse(Layout.parse(layout))
    with pytest.raises(LayoutError, match="known integers"):
        left_inverse(Layout.parse(layout))
