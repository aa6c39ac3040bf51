"""The site of a folder of pages, and that all pages of docs/ are on its menu."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ci.site.__main__ import build
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

CONF = 'extensions = ["myst_parser", "ci.site.flowchart", "ci.site.lexer"]\nmyst_heading_anchors = 3\n'
PAGE = "# A page\n\n[a link](#a-page)\n\n```mlir\n%x = addf %y, %z : tile<4xf32>\n```\n"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/conf.py").write_text(CONF)
    (tmp_path / "docs/index.md").write_text(PAGE)
    return tmp_path / "docs"


def test_a_site_is_built_anew(docs: Path) -> None:
    build(docs, docs.parent / "site")
    (docs.parent / "site/old.html").touch()
    build(docs, docs.parent / "site")
    assert (docs.parent / "site/index.html").is_file() and not (docs.parent / "site/old.html").exists()


@pytest.mark.filterwarnings("ignore:.*Check CHANGES for Sphinx API modifications")  # of MyST's code, and an error here
@pytest.mark.parametrize("link", ["[x](gone.md)", "[x](#gone)", "![x](gone.svg)"])
def test_a_broken_link_is_an_error(link: str, docs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (docs / "index.md").write_text(PAGE + link)
    with pytest.raises(UsageError, match="the site has warnings"):
        build(docs, docs.parent / "site")
    assert "index.md:8: WARNING: " in (said := capfd.readouterr().err) and "gone" in said


def test_a_picture_from_elsewhere_is_an_error(docs: Path) -> None:
    (docs / "index.md").write_text(PAGE + "![x](https://example.org/x.svg)")
    with pytest.raises(UsageError, match="from elsewhere"):
        build(docs, docs.parent / "site")


@pytest.mark.long("8 seconds; CI builds it in a job of its own")
def test_our_site_is_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ci.site", "--output", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, check=True)  # not in here, where a warning of Sphinx's own is an error
    assert (tmp_path / "site/reference/floats.html").is_file()


def test_every_page_is_on_the_menu_once() -> None:
    folder = ROOT / "docs"
    menus = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
    listed: list[str] = []
    for path in folder.rglob("*.md"):
        lines = [line for text in menus.findall(path.read_text()) for line in text.splitlines()]
        place = path.parent.relative_to(folder)
        listed += [str(place / line) for line in lines if line and not line.startswith(":")]
    pages = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.md")}
    assert sorted(listed) == sorted(pages - {"index", "runners/runners"})
