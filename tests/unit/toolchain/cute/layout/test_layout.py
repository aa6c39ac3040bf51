from __future__ import annotations

import pytest
from hypothesis import given

from tests.unit.toolchain.cute.layout.strategies import layouts
from toolchain.cute.layout import Layout, LayoutError, coalesce, cosize, filter_layout, flat, group_modes, select, size
from toolchain.cute.layout.tuples import parse

# Facts of NVIDIA's published CuTe IR: layout, profile, result.
COALESCED = [
    ("(4,5):(1,4)", None, "20:1"),
    ("(3,4):(8,1)", None, "(3,4):(8,1)"),
    ("(3,(4,5)):(8,(1,4))", None, "(3,20):(8,1)"),
    ("(2,(1,6)):(1,(6,2))", None, "12:1"),
    ("(3,(4,5)):(8,(1,4))", "(1,1)", "(3,20):(8,1)"),
    ("(4,5):(1,4)", "1", "20:1"),
    ("(?,4):(1,4)", None, "(?,4):(1,4)"),
    ("(4,5):(?,4)", None, "(4,5):(?,4)"),
    ("(?):(?)", None, "?:?"),
    ("(4,5,?):(1,4,?)", None, "(20,?):(1,?)"),
    ("(4,5,?,3,2):(1,4,?,1,3)", None, "(20,?,6):(1,?,1)"),
    ("(2,1,6):(4,?,8)", None, "12:4"),
    ("(?,?):(?,?)", None, "(?,?):(?,?)"),
    ("((16,4),128):((1@0,16@0),1@1)", None, "(64,128):(1@0,1@1)"),
    ("1:0", None, "1:0"),
    ("1:1", None, "1:1"),
    ("():()", None, "():()"),
    ("(2,1,6):(1,7,2)", None, "12:1"),
    ("(2,1,3):(3,0,1)", None, "(2,3):(3,1)"),
    ("((2,2),(2,2)):((1,4),(8,32))", None, "(2,4,2):(1,4,32)"),
    ("1:1", "()", "(1):(1)"),
    ("1:0", "(1)", "(1):(0)"),
    ("(2,4):(1,2)", "(1)", "(2,4):(1,2)"),
    ("((2,2),(2,2)):((1,2),(16,32))", "(1)", "(4,(2,2)):(1,(16,32))"),
    ("((2,2),(2,2)):((1,2),(16,32))", "(1,2)", "(4,4):(1,16)"),
]


@pytest.mark.parametrize(("layout", "profile", "result"), COALESCED)
def test_coalesce(layout: str, profile: str | None, result: str) -> None:
    wanted = None if profile is None else parse(profile)
    assert str(coalesce(Layout.parse(layout), wanted)) == result


@given(layouts())
def test_what_is_coalesced_or_flat_maps_every_index_alike(layout: Layout) -> None:
    indices = range(size(layout))
    assert [coalesce(layout)(i) for i in indices] == [layout(i) for i in indices]
    assert [flat(layout)(i) for i in indices] == [layout(i) for i in indices]


@given(layouts())
def test_the_text_of_a_layout_is_read_back(layout: Layout) -> None:
    assert Layout.parse(str(layout)) == layout


@given(layouts())
def test_the_cosize_is_one_more_than_the_greatest_offset(layout: Layout) -> None:
    assert cosize(layout) == 1 + max(layout(i) for i in range(size(layout)))


@given(layouts(-9))
def test_a_cosize_counts_the_offsets_from_the_least_to_the_greatest(layout: Layout) -> None:
    reached = layout.offsets()
    assert cosize(layout) == 1 + max(reached) - min(reached)


@pytest.mark.parametrize(
    ("layout", "result"),
    [("5:-2", 9), ("(4,3):(3,-1)", 12), ("(2,2):(-1,4)", 6), ("(2,3):(1@0,1@1)", 6), ("(2,3,2):(1@1,2@1,1@0@2)", 12)],
)
def test_cosize(layout: str, result: int) -> None:
    assert cosize(Layout.parse(layout)) == result


def test_a_layout_of_numbers_and_coordinates_has_no_cosize() -> None:
    with pytest.raises(LayoutError, match="adds a number and a coordinate"):
        cosize(Layout.parse("(2,3):(1,1@0)"))


def test_a_layout_without_strides_is_column_major() -> None:
    assert str(Layout.parse("(2,(3,4),5)")) == "(2,(3,4),5):(1,(2,6),24)"


def test_modes() -> None:
    layout = Layout.parse("(4,5,6):(1,4,20)")
    assert str(group_modes(layout, 0, 2)) == "((4,5),6):((1,4),20)"
    assert str(group_modes(layout, 0, 3)) == "((4,5,6)):((1,4,20))"
    assert str(select(layout, 2, 0)) == "(6,4):(20,1)"
    assert str(filter_layout(Layout.parse("(4,3,1):(1,0,9)"))) == "4:1"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("(4,5):(1,(2,3))", "not nested alike"),
        ("(4,0):(1,4)", "a size is less than 1"),
        ("(4,5", "expected"),
        ("4:1)", "column 2: the tuple ends before this"),
        ("(4;5)", "expected"),
        ("?{div=0}", "'div=0' is not i32, i64 or div=N"),
    ],
)
def test_a_layout_that_is_none_is_refused(written: str, said: str) -> None:
    with pytest.raises(LayoutError, match=said.replace("(", r"\(").replace(")", r"\)")):
        Layout.parse(written)


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (2, 1), (0, 4), (-1, 2)])
def test_modes_that_are_not_there_are_refused(begin: int, end: int) -> None:
    with pytest.raises(LayoutError, match="has no modes"):
        group_modes(Layout.parse("(4,5,6)"), begin, end)


@given(layouts())
def test_all_offsets_at_once_are_those_of_each_index(layout: Layout) -> None:
    assert layout.offsets() == [layout(i) for i in range(size(layout))]
    assert Layout.parse("(2,(2,2)):(1@0,(2@1,1@1))").offsets()[5] == (1, 1)
