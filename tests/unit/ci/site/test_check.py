"""What the checker of a built site finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.site.check import problems

HEAD = '<link rel="stylesheet" href="site.css"><link rel="next" href="gone.html"><script src="a.js"></script>'


def write(folder: Path, body: str, css: str = "body { background: url(data:image/png;base64,x) }") -> Path:
    (folder / "a.js").touch()
    (folder / "site.css").write_text(css)
    (folder / "other.html").write_text('<h1 id="here">There</h1>')
    (folder / "index.html").write_text(f"{HEAD}<p id='top'>{body}</p>")
    return folder


@pytest.mark.parametrize(
    "body",
    [
        '<a href="#top">x</a>', '<a href="other.html#here">x</a>', '<a href="https://example.org/x#y">x</a>',
        '<img src="data:image/png;base64,x">', '<a href="a.js">x</a>',
    ],
)  # fmt: skip
def test_a_site_that_is_whole(body: str, tmp_path: Path) -> None:
    assert list(problems(write(tmp_path, body))) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="gone.html">x</a>', "the link gone.html leads nowhere"),
        ('<a href="#gone">x</a>', "#gone: that page has no such place"),
        ('<a href="other.html#gone">x</a>', "other.html#gone: that page has no such place"),
        ('<img src="gone.svg">', "loads gone.svg, which does not exist"),
        ('<img src="https://example.org/x.svg">', "loads https://example.org/x.svg from elsewhere"),
        ('<script src="//example.org/x.js"></script>', "loads //example.org/x.js from elsewhere"),
        ('<link rel="stylesheet" href="https://example.org/x.css">', "loads https://example.org/x.css from elsewhere"),
    ],
)
def test_what_is_wrong(body: str, said: str, tmp_path: Path) -> None:
    assert list(problems(write(tmp_path, body))) == [f"index.html: {said}"]


@pytest.mark.parametrize("css", ["a { src: url( 'https://example.org/f' ) }", '@import "https://example.org/f.css";'])
def test_a_style_sheet_that_loads_a_font(css: str, tmp_path: Path) -> None:
    assert list(problems(write(tmp_path, "", css))) == ["site.css: loads something from elsewhere"]
