from __future__ import annotations

import pytest

from toolchain.cute.layout import Layout, LayoutError, downcast, recast_layout, upcast


@pytest.mark.parametrize(
    ("layout", "new", "old", "result"),
    [
        ("(32,4):(1,32)", 32, 8, "(8,4):(1,8)"),
        ("(8,4):(1,8)", 8, 32, "(32,4):(1,32)"),
        ("(8,4):(1,8)", 32, 32, "(8,4):(1,8)"),
        ("(8,4):(1,8)", 4, 6, "(12,4):(1,12)"),
    ],
)
def test_recast(layout: str, new: int, old: int, result: str) -> None:
    assert str(recast_layout(Layout.parse(layout), new, old)) == result


def test_an_element_that_would_be_cut_is_an_error() -> None:
    with pytest.raises(LayoutError, match="neither divides"):
        recast_layout(Layout.parse("(8,4):(1,9)"), 16, 8)


@pytest.mark.parametrize(
    ("layout", "said"),
    [("(4,2):(2,8)", "is none"), ("4:0", "is none"), ("4:?", "is none"), ("4:-1", "one of stride -1"),
     ("(4,4):(1,1)", "several")],
)  # fmt: skip
def test_smaller_elements_need_a_mode_to_lie_in(layout: str, said: str) -> None:
    with pytest.raises(LayoutError, match=said):
        downcast(Layout.parse(layout), 2)
    assert str(downcast(Layout.parse(layout), 1)) == layout


def test_smaller_elements_are_all_there() -> None:
    assert str(downcast(Layout.parse("(4,2):(-8,1)"), 2)) == "(4,4):(-16,1)"
    assert str(downcast(Layout.parse("(4,2):(?,1)"), 2)) == "(4,4):(?{div=2},1)"


def test_steps_down_within_a_larger_element_are_refused() -> None:
    assert str(upcast(Layout.parse("(4,2):(-4,1)"), 2)) == "(4,1):(-2,1)"
    with pytest.raises(LayoutError, match="steps of -1 cut the elements of 2"):
        upcast(Layout.parse("4:-1"), 2)
