from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchain.cute.layout import Layout, LayoutError, flat_divide, logical_divide, size, tiled_divide, zipped_divide

A = Layout.parse("(6,8):(8,1)")


def test_the_four_divides_group_the_same_modes() -> None:
    assert str(logical_divide(A, (3, 4))) == "((3,2),(4,2)):((8,24),(1,4))"
    assert str(zipped_divide(A, (3, 4))) == "((3,4),(2,2)):((8,1),(24,4))"
    assert str(tiled_divide(A, (3, 4))) == "((3,4),2,2):((8,1),24,4)"
    assert str(flat_divide(A, (3, 4))) == "(3,4,2,2):(8,1,24,4)"


def test_a_tile_of_layouts_keeps_their_nesting() -> None:
    tile = (Layout.parse("(3):(1)"), Layout.parse("(4):(1)"))
    assert str(logical_divide(A, tile)) == "(((3),2),((4),2)):(((8),24),((1),4))"


def test_a_layout_divides_the_whole() -> None:
    assert str(logical_divide(A, Layout.parse("(3,4):(1,3)"))) == "((3,(2,2)),4):((8,(24,1)),2)"


@given(st.sampled_from((4, 6, 8, 12)), st.sampled_from((6, 8, 12)), st.sampled_from((1, 2)), st.sampled_from((1, 2, 3)))
def test_a_division_keeps_every_element(rows: int, columns: int, height: int, width: int) -> None:
    if columns % width:
        width = 1
    whole = Layout((rows, columns), (columns, 1))
    parts = zipped_divide(whole, (height, width))
    assert size(parts) == size(whole)
    assert sorted(parts(i) for i in range(size(parts))) == list(range(size(whole)))
    # The first tile is the corner of the matrix.
    corner = {row * columns + column for row in range(height) for column in range(width)}
    assert {parts[0](i) for i in range(size(parts[0]))} == corner


def test_a_size_that_the_tile_does_not_divide_is_rounded_up() -> None:
    assert str(zipped_divide(Layout.parse("10:1"), (4,))) == "((4),(3)):((1),(4))"


def test_the_rest_of_a_layout_is_rounded_up_for_each_mode() -> None:
    assert str(logical_divide(Layout.parse("(6,8):(1,6)"), Layout.parse("4:1"))) == "(4,16):(1,4)"
    assert str(logical_divide(Layout.parse("((2,3),8):((1,2),6)"), (4, 8))) == "((4,2),(8,1)):((1,4),(6,48))"


def test_a_division_that_would_lose_elements_is_refused() -> None:
    with pytest.raises(LayoutError, match="mode by mode it ends at 3"):
        zipped_divide(Layout.parse("((2,2),2):((1,2),4)"), (3, 1))
    assert str(zipped_divide(Layout.parse("(4,2):(1,4)"), (3, 1))) == "((3,1),(2,2)):((1,4),(3,4))"


def test_a_division_that_carries_is_refused() -> None:
    with pytest.raises(LayoutError, match="do not fit a mode of 6"):
        logical_divide(Layout.parse("(6,8):(8,1)"), Layout.parse("4:1"))


def test_a_tile_with_too_many_parts_is_refused() -> None:
    with pytest.raises(LayoutError, match="does not fit"):
        zipped_divide(Layout.parse("(4,4)"), (2, 2, 2))
