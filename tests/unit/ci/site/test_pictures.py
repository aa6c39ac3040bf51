"""The pictures of docs/tiles.md."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ci.site.pictures import FOLDER, PICTURES

SPACE = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_one_that_is_drawn_and_nothing_lies_outside_of_it(name: str) -> None:
    picture = PICTURES[name]()
    assert (FOLDER / f"{name}.svg").read_text() == picture.render(), "python -m ci.site --generate"
    for box in ElementTree.fromstring(picture.render()).iter(f"{SPACE}rect"):
        if "x" in box.attrib:
            assert 0 <= float(box.attrib["x"]) <= picture.width - float(box.attrib["width"])
            assert 0 <= float(box.attrib["y"]) <= picture.height - float(box.attrib["height"])


def test_there_are_no_others() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(PICTURES)
