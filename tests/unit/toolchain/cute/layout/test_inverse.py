from __future__ import annotations

import pytest
from hypothesis import given

from tests.unit.toolchain.cute.layout.strategies import bijections, coordinate_injections, injections
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


# Facts of the same, of strides along coordinates.
OF_COORDINATES = [
    ("(2,3):(1@0,1@1)", "(2,3):(1,2)", "(2,3):(1,2)"),
    ("(4,5):(1@1,1@0)", "(5,4):(4,1)", "(5,4):(4,1)"),
    ("(2,3):(0,1@0)", "(3):(2)", "(3):(2)"),
    ("(4,1,5):(1@0,0,1@1)", "(4,5):(1,4)", "(4,5):(1,4)"),
    ("(4,5):(2@0,2@1)", "(1,1):(0,0)", "((2,4),(2,5)):((0,1),(0,4))"),
    ("(((16,4),64),1,1):(((1@1,32@1),2@0),0,0)", "(1,16):(0,1)", "((2,64),(32,4)):((0,64),(1,16))"),
    ("(4,5):(1@1,1@1@4)", "(1,4,1,1,(1,5)):(0,1,0,0,(0,4))", "(1,4,1,1,(1,5)):(0,1,0,0,(0,4))"),
    (
        "((2,2,2),(2,2,2)):((1@0,2@1,5@0),(1@1,2@0,4@1))",
        "((2,2),(2,2,2)):((1,16),(8,2,32))",
        None,
    ),
    (
        "((2,2,2),(2,2,2)):((1@0,2@1,6@0),(1@1,2@0,4@1))",
        "((2,2),(2,2,2)):((1,16),(8,2,32))",
        "((2,3,2),(2,2,2)):((1,16,4),(8,2,32))",
    ),
    ("((4,8),(2,2)):((2@1,1@0),(1@1,8@0))", "((8,2),(2,4)):((4,64),(32,1))", "((8,2),(2,4)):((4,64),(32,1))"),
]


@pytest.mark.parametrize(("layout", "right", "left"), OF_COORDINATES)
def test_inverses_of_strides_along_coordinates(layout: str, right: str, left: str | None) -> None:
    assert str(right_inverse(Layout.parse(layout))) == right
    if left is not None:
        assert str(left_inverse(Layout.parse(layout))) == left


@given(coordinate_injections())
def test_a_left_inverse_leads_from_a_coordinate_to_its_index(layout: Layout) -> None:
    inverse = left_inverse(layout)
    assert [inverse(layout(i)) for i in range(size(layout))] == list(range(size(layout)))


@given(coordinate_injections())
def test_a_right_inverse_leads_to_different_indices_and_back_from_their_coordinates(layout: Layout) -> None:
    inverse = right_inverse(layout)
    reached = inverse.offsets()
    assert len(set(reached)) == len(reached)
    assert [inverse(layout(i)) for i in reached] == reached


@given(coordinate_injections(largest_gap=1))
def test_without_gaps_a_right_inverse_reaches_every_index(layout: Layout) -> None:
    assert sorted(right_inverse(layout).offsets()) == list(range(size(layout)))


# Facts of the same, of numbers that only the kernel knows.
UNKNOWN = [
    ("(2,4,6):(4,1,?)", "(4,2):(2,1)"),
    ("1:?", "1:0"),
    ("(4,3):(?,1)", "3:4"),
    ("(16,?):(1,16)", "(16,?):(1,16)"),
    ("(?,4):(1,16)", "?:1"),
    ("(?,4):(0,1)", "4:?"),
]


@pytest.mark.parametrize(("layout", "right"), UNKNOWN)
def test_a_right_inverse_goes_as_far_as_the_numbers_are_known(layout: str, right: str) -> None:
    assert str(right_inverse(Layout.parse(layout))) == right
    with pytest.raises(LayoutError, match="known numbers"):
        left_inverse(Layout.parse(layout))


@pytest.mark.parametrize("layout", ["(?,3):(?,4)", "(?,3):(1@0,1@1)"])
def test_a_size_that_is_not_known_needs_strides_that_are(layout: str) -> None:
    with pytest.raises(LayoutError, match="needs strides that are known integers"):
        right_inverse(Layout.parse(layout))


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("(8,4,2):(13,2,1)", "stride 2 does not divide stride 13"),
        ("(2,2):(2@0,3@0)", "stride 2 does not divide stride 3"),
        ("4:-1", "a mode steps down, by -1"),
        ("(2,4):(-8,1)", "a mode steps down, by -8"),
        ("(2,3):(1,1@0)", "adds a number and a coordinate"),
        ("(2,3):(1@0,1@1@0)", "adds a number and a coordinate"),
    ],
)
def test_layouts_without_a_left_inverse(layout: str, said: str) -> None:
    with pytest.raises(LayoutError, match=said):
        left_inverse(Layout.parse(layout))
