from __future__ import annotations

from xml.etree import ElementTree

import pytest

from toolchain.cute import draw
from toolchain.cute.atoms import find, find_copy
from toolchain.cute.atoms.tcgen05 import find_tcgen05
from toolchain.cute.layout import Layout, LayoutError
from toolchain.errors import UsageError


def test_a_layout_is_a_grid_of_its_offsets() -> None:
    text = draw.as_text(draw.of_layout(Layout.parse("(2,3):(3,1)")))
    assert text.splitlines()[1:] == ["  0 1 2", "0 0 1 2", "1 3 4 5"]


def test_a_layout_of_one_mode_is_a_row() -> None:
    assert draw.as_text(draw.of_layout(Layout.parse("4:2"))).splitlines()[-1] == "0 0 2 4 6"


def test_colours_are_banks_and_the_title_counts_conflicts() -> None:
    plain = draw.of_layout(Layout.parse("(8,32):(32,1)"), 4, Layout.parse("8:1"))
    assert "8-way bank conflict" in plain.title
    assert {row[0].colour for row in plain.rows} == {0}
    swizzled = draw.of_layout(draw.parse_layout("S<3,2,3> o 0 o (8,32):(32,1)"), 4, Layout.parse("8:1"))
    assert "1-way bank conflict" in swizzled.title
    assert [row[0].colour for row in swizzled.rows] == [0, 4, 8, 12, 16, 20, 24, 28]


def test_an_atom_shows_the_thread_and_the_value_of_each_element() -> None:
    picture = draw.of_atom(find("mma.m16n8k16.f32.bf16"), "c")
    assert [len(picture.rows), len(picture.rows[0])] == [16, 8]
    assert [cell.label for cell in picture.rows[8][:3]] == ["T0V2", "T0V3", "T1V2"]


def test_a_copy_shows_who_holds_and_who_addresses() -> None:
    held = draw.of_copy(find_copy("ldmatrix.x2"), "registers")
    assert [cell.label for cell in held.rows[9][:4]] == ["T4V2", "T4V3", "T5V2", "T5V3"]
    assert {cell.colour for cell in draw.of_copy(find_copy("ldmatrix.x2"), "rows").rows[9]} == {9}


def test_an_accumulator_in_tensor_memory_has_a_row_in_each_lane() -> None:
    picture = draw.of_tensor_memory(find_tcgen05("tcgen05.m128n16k16.f32.bf16"))
    assert [len(picture.rows), len(picture.rows[0])] == [128, 16]
    assert [cell.label for cell in picture.rows[9][:2]] == ["T9V0", "T9V1"]
    with pytest.raises(UsageError, match="row in each lane"):
        draw.of_tensor_memory(find_tcgen05("tcgen05.m64n16k16.f32.bf16"))


def test_the_svg_has_a_box_and_a_label_for_each_element() -> None:
    root = ElementTree.fromstring(draw.as_svg(draw.of_layout(Layout.parse("(2,3):(3,1)"))))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}rect")) == 1 + 6
    assert [text.text for text in root.findall(f"{space}text")][-1] == "5"
    assert "S&lt;1,0,1&gt;" in draw.as_svg(draw.of_layout(draw.parse_layout("S<1,0,1> o 0 o 4:1")))


@pytest.mark.parametrize("written", ["(2,2,2)", "(4,?):(1,4)", "(2,3):(1@0,1@1)"])
def test_what_has_no_grid_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="cannot be drawn"):
        draw.of_layout(Layout.parse(written))


def test_what_is_too_large_or_not_a_layout_is_refused() -> None:
    with pytest.raises(UsageError, match="65536 elements"):
        draw.of_layout(Layout.parse("(256,256)"))
    with pytest.raises(LayoutError, match="inner o offset o outer"):
        draw.parse_layout("S<1,0,1> o 4:1")
