from __future__ import annotations

import pytest
from hypothesis import given

from tests.unit.toolchain.cute.layout.strategies import layouts
from toolchain.cute.layout import Layout, LayoutError, crd2idx, dice, idx2crd, size, slice_and_offset, slice_layout
from toolchain.cute.layout.tuples import parse

A = Layout.parse("(2,3,4):(1,2,6)")


@given(layouts())
def test_an_index_and_its_coordinate_have_the_same_offset(layout: Layout) -> None:
    for index in range(size(layout)):
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


@pytest.mark.parametrize("coordinate", ["(0,1)", "(0,1,2,3)", "((0,1),1,2)"])
def test_a_coordinate_that_does_not_fit_is_refused(coordinate: str) -> None:
    with pytest.raises(LayoutError, match="does not fit"):
        crd2idx(parse(coordinate), A)
