"""A comparison as text, as a comment of bounded length, and as a page."""

from __future__ import annotations

from dataclasses import replace

from ci.diff.compare import Comparison, Pair
from ci.diff.score import reasons
from ci.diff.show import MARKDOWN_LIMIT, html, markdown, summary, text
from toolchain.compiling.cubin import Usage

from .conftest import PLAIN, other


def pair(name: str, after: Usage, target: str = "sm_90") -> Pair:
    return Pair(name, "gelu", "f16", target, PLAIN, after, True, tuple(reasons(PLAIN, after)))


SPILLED = pair("py/spilled", other(spills=9, mix={"FFMA": 384, "HGMMA": 16, "STL": 9}))
LESS = pair("py/less", other(registers=24, shared=0, instructions=100, mix={"HGMMA": 16}))
MADE = Comparison(("<one>", "two"), ("ptxas 1 to 2",), (SPILLED, LESS), 3, (("py/gone sm_80",), ()))


def test_text_has_every_list() -> None:
    lines = "\n".join(text(MADE))
    assert summary(MADE) == "1 suspicious, 1 better, 0 otherwise changed, 3 identical, 1 in one bundle alone"
    assert "spill instructions 0 to 9" in lines and "instructions: STL 0 to 9" in lines
    assert "ptxas 1 to 2" in lines and "only in <one>: py/gone sm_80" in lines


def test_a_comment_is_never_too_long() -> None:
    made = markdown(MADE)
    assert "| 40 | `py/spilled` | sm_90 | spill instructions 0 to 9 |" in made and "`py/gone sm_80`" in made
    many = tuple(replace(SPILLED, name="py/" + "x" * 9000 + str(i)) for i in range(50))
    long = markdown(replace(MADE, changed=many))
    assert len(long) < MARKDOWN_LIMIT + 2000 < 65_536 and "44 more" in long


def test_the_page_stands_alone_and_escapes() -> None:
    page = html(MADE)
    assert "&lt;one&gt;" in page and "<one>" not in page
    assert "py/spilled" in page and "light dark" in page
    assert "http://" not in page and "https://" not in page
