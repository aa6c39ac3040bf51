from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.toolchain.cute.layout.strategies import layouts
from toolchain.cute.layout import Layout, LayoutError, crd2idx, dice, idx2crd, size, slice_and_offset, slice_layout
from toolchain.cute.layout.tuples import parse

A = Layout.parse("(2,3,4):(1,2,6)")


@given(layouts())
def test_an_index_and_its_coordinate_have_the_same_offset(layout: Layout) -> None:
    for index in range(size(layout)):
        assert layout(idx2crd(index, layout.shape)) == layout(index)


@pytest.mark.parametrize(
    ("index", "shape", "result"),
    [
        (25, "(4,3)", "(1,6)"),
        (30, "(4,(2,3))", "(2,(1,3))"),
        (30, "((2,2),(2,3))", "((0,1),(1,3))"),
        (12, "(4,3,1)", "(0,0,1)"),
        (9, "(5)", "(9)"),
        (9, "5", "9"),
        (0, "()", "()"),
        (-5, "(4,3)", "(-1,-1)"),
    ],
)
def test_an_index_beyond_the_shape_goes_on_in_the_last_mode(index: int, shape: str, result: str) -> None:
    assert idx2crd(index, parse(shape)) == parse(result)


@given(layouts(-4), st.integers(-100, 100))
def test_any_index_and_its_coordinate_have_the_same_offset(layout: Layout, index: int) -> None:
    assert layout(idx2crd(index, layout.shape)) == layout(index)


def test_a_coordinate_may_be_flatter_than_the_shape() -> None:
    layout = Layout.parse("(2,(3,4)):(12,(4,1))")
    assert layout((1, (2, 3))) == 12 + 8 + 3
    assert layout((1, 5)) == 12 + 8 + 1  # 5 is (2, 1) in (3, 4)
    assert layout(11) == 12 + 8 + 1


def test_strides_along_a_coordinate_give_a_coordinate() -> None:
    layout = Layout.parse("((16,4),128):((1@0,16@0),2@1)")
    assert layout(((3, 2), 5)) == (35, 10)
    assert layout((0, 1)) == (0, 2)


def test_slice_keeps_what_is_open_and_dice_what_is_not() -> None:
    coordinate = parse("(0,_,1)")
    assert str(slice_layout(A, coordinate)) == "(3):(2)"
    assert str(dice(A, coordinate)) == "(2,4):(1,6)"
    assert slice_and_offset(A, parse("(1,_,2)"))[1] == 1 + 12


def test_what_is_kept_of_nested_modes_stands_side_by_side() -> None:
    nested = Layout.parse("((2,4),3):((1,2),8)")
    assert str(slice_layout(nested, parse("((_,0),_)"))) == "(2,3):(1,8)"
    assert str(slice_layout(nested, parse("((0,0),_)"))) == "(3):(8)"
    assert str(slice_layout(nested, parse("(_,0)"))) == "((2,4)):((1,2))"
    assert str(dice(nested, parse("((1,_),_)"))) == "(2):(1)"
    deep = Layout.parse("(((2,3),4),(5,(6,7))):(((1,2),6),(24,(120,720)))")
    assert str(slice_layout(deep, parse("((_,0),_)"))) == "((2,3),(5,(6,7))):((1,2),(24,(120,720)))"
    assert str(slice_layout(deep, parse("(((_,0),_),(0,_))"))) == "(2,4,(6,7)):(1,6,(120,720))"


@pytest.mark.parametrize("coordinate", ["(0,1)", "(0,1,2,3)", "((0,1),1,2)"])
def test_a_coordinate_that_does_not_fit_is_refused(coordinate: str) -> None:
    with pytest.raises(LayoutError, match="does not fit"):
        crd2idx(parse(coordinate), A)
