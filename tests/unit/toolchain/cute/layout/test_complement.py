from __future__ import annotations

import re
from itertools import product as pairs

import pytest
from hypothesis import given

from tests.unit.toolchain.cute.layout.strategies import injections
from toolchain.cute.layout import Layout, LayoutError, complement, cosize, make_layout, size
from toolchain.cute.layout.tuples import parse

# Facts of NVIDIA's published CuTe IR: layout, cotarget, result.
COMPLEMENTS = [
    ("3:1", "3", "1:3"),
    ("3:2", "6", "2:1"),
    ("(3,(5,2)):(1,(3,15))", "(6,20)", "4:30"),
    ("(2,3):(1,2)", "6", "1:6"),
    ("3:0", "6", "6:1"),
    ("3:2", "(2,3)", "2:1"),
    ("3:2", "24", "(2,4):(1,6)"),
    ("():()", "128", "128:1"),
    ("1:0", "1", "1:1"),
    ("1:2", "1", "1:1"),
    ("1:2", "8", "8:1"),
    ("1:0", "5", "5:1"),
    ("1:1", "(2,?)", "(2,?):(1,2)"),
    ("3:2", "?", "(2,?):(1,6)"),
    ("(3):(?)", "12", "(?,?):(1,?)"),
    ("?:?", "12", "(?,?):(1,?)"),
    ("(2,2):(4,1)", "24", "(2,3):(2,8)"),
    ("(2,2):(4,1)", None, "(2,1):(2,8)"),
    ("4:1", "(6,8)", "16:4"),
    ("4:1", "(6,(8,5))", "80:4"),
    ("12:1", "(6,8)", "4:12"),
    ("4:2", "(2,?)", "(2,?):(1,8)"),
    ("4:4", "(2,?)", "(4,?):(1,16)"),
    ("2:1", "(?,?)", "?:2"),
    ("5:2", "(?,?)", "(2,?):(1,10)"),
]


def _plain(layout: Layout) -> str:
    """Without divisibilities: we derive more of them than the published results state."""
    return re.sub(r"\{[^}]*\}", "", str(layout))


@pytest.mark.parametrize(("layout", "cotarget", "result"), COMPLEMENTS)
def test_complement(layout: str, cotarget: str | None, result: str) -> None:
    target = None if cotarget is None else parse(cotarget)
    assert _plain(complement(Layout.parse(layout), target)) == result


def test_sizes_that_are_not_known_are_one_mode_or_stay_apart() -> None:
    assert str(complement(Layout.parse("2:1"), parse("(?,?)"), apart=True)).replace("{div=2}", "") == "(?,?):(2,?)"
    assert str(complement(Layout.parse("2:1"), (6, 8), apart=True)) == "24:2"


def test_a_complement_up_to_a_layout_takes_its_shape() -> None:
    assert str(complement(Layout.parse("(3,(5,2)):(1,(3,15))"), Layout.parse("(6,20):(1,6)"))) == "4:30"
    assert str(complement(Layout.parse("2:1"), Layout.parse("4:2"))) == "2:2"
    assert str(complement(Layout.parse("2:1"), Layout.parse("5:-2"))) == "3:2"


def test_steps_down_have_no_complement() -> None:
    with pytest.raises(LayoutError, match="the mode 4:-1 steps down"):
        complement(Layout.parse("4:-1"), 8)


@given(injections())
def test_a_layout_and_its_complement_reach_each_offset_once(layout: Layout) -> None:
    target = 2 * cosize(layout)
    try:
        rest = complement(layout, target)
    except LayoutError:
        return
    both = make_layout(layout, rest)
    reached = [both((i, j)) for i, j in pairs(range(size(layout)), range(size(rest)))]
    assert len(set(reached)) == len(reached)
    assert set(range(target)) <= set(reached)


def test_modes_that_overlap_have_no_complement() -> None:
    with pytest.raises(LayoutError, match="overlaps"):
        complement(Layout.parse("(4,4):(1,2)"), 32)


def test_a_complement_that_rounding_by_mode_cuts_short_is_refused() -> None:
    with pytest.raises(
        LayoutError, match=r"3:1 has no complement up to \(2,2\): mode by mode it ends at 3; coalesced, 4"
    ):
        complement(Layout.parse("3:1"), (2, 2))
    assert str(complement(Layout.parse("3:1"), 4)) == "2:3"
    assert str(complement(Layout.parse("8:1"), (2, 2))) == "1:8"


@pytest.mark.parametrize(
    ("layout", "cotarget", "result"),
    [
        ("5:1@0", None, "(1):(5@0)"),
        ("(2,3):(1@0,4@1)", None, "(1,(4,1)):(2@0,(1@1,12@1))"),
        ("3:2@1", None, "(1,(2,1)):(1@0,(1@1,6@1))"),
        ("2:3@1@1", None, "(1,(1,(3,1))):(1@0,(1@0@1,(1@1@1,6@1@1)))"),
        ("2:8@0", "(16,4)", "(8,4):(1@0,1@1)"),
        ("2:8@0", "(64,4)", "((8,4),4):((1@0,16@0),1@1)"),
        ("16:1@0", "(16,4)", "4:1@1"),
    ],
)
def test_a_complement_along_coordinates_has_a_mode_for_each(layout: str, cotarget: str | None, result: str) -> None:
    assert str(complement(Layout.parse(layout), None if cotarget is None else parse(cotarget))) == result


@pytest.mark.parametrize(
    ("layout", "cotarget", "said"),
    [
        ("2:1@1", (4,), "steps along 2 coordinates, and (4) has 1"),
        ("?:1@0", (4, 4), "along coordinates all numbers must be known"),
        ("(2,2):(1@0,1@0@0)", None, "adds a number and a coordinate"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(layout: str, cotarget: tuple[int, ...] | None, said: str) -> None:
    with pytest.raises(LayoutError, match=re.escape(said)):
        complement(Layout.parse(layout), cotarget)


def test_padding_is_a_hole_that_no_complement_fills_and_room_for_whole_copies() -> None:
    padded = Layout.parse("(4,6):(1,7)")
    with pytest.raises(LayoutError, match="the mode 6:7 leaves a hole of 3 behind each 4"):
        complement(padded)
    assert str(complement(padded, padded=True)) == "1:42"
