from __future__ import annotations

import pytest

from toolchain.cute.layout import Layout, LayoutError, recast_layout


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
