from __future__ import annotations

import pytest
from hypothesis import given

from tests.unit.toolchain.cute.layout.strategies import bijections
from toolchain.cute.layout import (
    Layout,
    LayoutError,
    append_to_rank,
    blocked_product,
    cosize,
    flat_product,
    logical_product,
    make_identity_layout,
    make_layout_like,
    make_ordered_layout,
    prepend_to_rank,
    raked_product,
    size,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from toolchain.cute.layout.tuples import parse

BLOCK, TILER = Layout.parse("(3,4):(4,1)"), Layout.parse("(2,5):(1,2)")


def test_the_six_products_group_the_same_modes() -> None:
    assert str(logical_product(BLOCK, TILER)) == "((3,4),(2,5)):((4,1),(12,24))"
    assert str(zipped_product(BLOCK, TILER)) == "((3,4),(2,5)):((4,1),(12,24))"
    assert str(tiled_product(BLOCK, TILER)) == "((3,4),2,5):((4,1),12,24)"
    assert str(flat_product(BLOCK, TILER)) == "(3,4,2,5):(4,1,12,24)"
    assert str(blocked_product(BLOCK, TILER)) == "((3,2),(4,5)):((4,12),(1,24))"
    assert str(raked_product(BLOCK, TILER)) == "((2,3),(5,4)):((12,4),(24,1))"


def test_copies_go_where_the_block_leaves_room() -> None:
    block = Layout.parse("(2,2):(4,1)")
    assert str(logical_product(block, Layout.parse("6:1"))) == "((2,2),(2,3)):((4,1),(2,8))"
    assert str(logical_product(block, Layout.parse("(3,2):(2,1)"))) == "((2,2),(3,2)):((4,1),(8,2))"


@given(bijections(), bijections())
def test_a_product_reaches_as_many_offsets_as_both_together(block: Layout, tiler: Layout) -> None:
    made = logical_product(block, tiler)
    assert len({made(i) for i in range(size(made))}) == size(block) * size(tiler) == cosize(made)


def test_tile_to_shape_repeats_the_block_until_it_covers_the_shape() -> None:
    block = Layout.parse("(2,2):(1,2)")
    assert str(tile_to_shape(block, (8, 8))) == "((2,4),(2,4)):((1,4),(2,16))"
    assert str(tile_to_shape(block, (8, 8), (1, 0))) == "((2,4),(2,4)):((1,16),(2,4))"
    assert str(tile_to_shape(block, (7, 8))) == "((2,4),(2,4)):((1,4),(2,16))"


def test_ranks_are_filled_with_modes_of_size_1() -> None:
    assert str(append_to_rank(Layout.parse("4:1"), 3)) == "(4,1,1):(1,0,0)"
    assert str(prepend_to_rank(Layout.parse("4:1"), 2)) == "(1,4):(0,1)"
    with pytest.raises(LayoutError, match="more than 1 modes"):
        append_to_rank(Layout.parse("(4,4)"), 1)


def test_a_size_of_1_has_stride_0() -> None:
    assert str(tile_to_shape(Layout.parse("(2,2):(1,2)"), (2, 4))) == "((2,1),(2,2)):((1,0),(2,4))"
    assert str(make_ordered_layout((1, 3, 4), (2, 1, 0))) == "(1,3,4):(0,4,1)"
    assert str(make_layout_like(Layout.parse("(1,4):(4,1)"))) == "(1,4):(0,1)"


def test_each_mode_of_a_raked_product_is_coalesced() -> None:
    assert str(raked_product(Layout.parse("(4,3):(1,4)"), Layout.parse("2:1"))) == "((2,4),3):((12,1),4)"
    assert str(raked_product(Layout.parse("128:1"), Layout.parse("(4,4):(1,4)"))) == "((4,128),4):((128,1),512)"


def test_a_rank_is_filled_with_any_layout() -> None:
    filler = Layout.parse("(1,2):(1,0)")
    assert str(append_to_rank(Layout.parse("(4,8):(1,4)"), 3, filler)) == "(4,8,(1,2)):(1,4,(1,0))"
    assert str(prepend_to_rank(Layout.parse("(4,8):(1,4)"), 3, filler)) == "((1,2),4,8):((1,0),1,4)"


def test_an_order_names_each_mode() -> None:
    assert str(make_ordered_layout((2, 3, 4), (2, 0, 1))) == "(2,3,4):(12,1,3)"
    with pytest.raises(LayoutError, match="does not name each mode"):
        make_ordered_layout((2, 3), (0,))


def test_orders_may_be_nested_and_may_have_ties() -> None:
    assert str(make_ordered_layout((4, 3, 8, 2), (2, 1, 3, 0))) == "(4,3,8,2):(6,2,24,1)"
    assert str(make_ordered_layout((2, (3, 4)), (1, (2, 0)))) == "(2,(3,4)):(4,(8,1))"
    assert str(make_ordered_layout((2, 3), (0, 0))) == "(2,3):(1,2)"
    assert str(make_ordered_layout(parse("(4,3,?,2)"), (2, 1, 3, 4))) == "(4,3,?,2):(3,1,12,?{div=12})"


@pytest.mark.parametrize(
    ("layout", "result"),
    [
        ("8:2", "8:1"),
        ("(4,2):(4,1)", "(4,2):(2,1)"),
        ("(2,(3,4)):(1,(2,8))", "(2,(3,4)):(1,(2,6))"),
        ("(2,3,4,5):(0,42,1,0)", "(2,3,4,5):(0,4,1,0)"),
        ("(2,?,3):(?,?,1)", "(2,?,3):(3,6,1)"),
        ("(?,5):(1,?)", "(?,5):(1,?)"),
    ],
)
def test_a_layout_like_another_has_its_order_without_gaps(layout: str, result: str) -> None:
    assert str(make_layout_like(Layout.parse(layout))) == result


def test_an_identity_layout_maps_each_coordinate_to_itself() -> None:
    layout = make_identity_layout((2, (3, 4), 5))
    assert str(layout) == "(2,(3,4),5):(1@0,(1@0@1,1@1@1),1@2)"
    assert layout((1, (2, 3), 4)) == (1, (2, 3), 4)
    assert str(make_identity_layout(4)) == "4:1"
    with pytest.raises(LayoutError, match="have no order"):
        make_layout_like(layout)
