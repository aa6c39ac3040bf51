"""Mermaid flowcharts as SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from ci.site.flowchart import draw, layers, parse
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

CHART = """
flowchart LR
  change --> ci -- "on main" --> run["run on GPUs"]
  other --> run
"""
SPACE = "{http://www.w3.org/2000/svg}"


def test_chains_labels_and_names_are_read() -> None:
    chart = parse(CHART)
    assert chart.labels == {"change": "change", "ci": "ci", "run": "run on GPUs", "other": "other"}
    assert chart.arrows == (("change", "ci", ""), ("ci", "run", "on main"), ("other", "run", ""))
    assert layers(chart) == [["change"], ["ci", "other"], ["run"]]  # `other` stands beside what it leads to


@pytest.mark.parametrize("text", ["sequenceDiagram\n a", "flowchart LR\n a -.-> b", "flowchart LR\n a{b} --> c"])
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


@pytest.mark.parametrize("down", [False, True])
def test_a_box_for_each_name_an_arrow_head_for_each_arrow_inside_of_the_picture(down: bool) -> None:
    chart = parse(CHART.replace("LR", "TD") if down else CHART)
    picture = draw(chart, "")
    root = ElementTree.fromstring(picture.render())
    boxes = [box for box in root.iter(f"{SPACE}rect") if box.get("rx")]
    assert len(boxes) == 4 and len(list(root.iter(f"{SPACE}polygon"))) == 3
    for box in boxes:
        assert 0 <= float(box.attrib["x"]) <= picture.width - float(box.attrib["width"])
        assert 0 <= float(box.attrib["y"]) <= picture.height - float(box.attrib["height"])
    places = {(box.attrib["x"], box.attrib["y"]) for box in boxes}
    assert len(places) == 4
    along, long = ("y", "height") if down else ("x", "width")  # an arrow begins where a box ends
    ends = {float(box.attrib[along]) + float(box.attrib[long]) for box in boxes}
    begins = {float(line.attrib[f"{along}1"]) for line in root.iter(f"{SPACE}line")}
    assert begins and all(any(abs(begin - end) < 0.2 for end in ends) for begin in begins)


def test_the_charts_of_the_pages_can_be_drawn() -> None:
    texts = [t for p in (ROOT / "docs").rglob("*.md") for t in re.findall(r"```mermaid\n(.*?)```", p.read_text(), re.S)]
    assert texts
    for text in texts:
        draw(parse(text), "")
