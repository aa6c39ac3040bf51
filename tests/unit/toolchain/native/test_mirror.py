from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.native.mirror import mirror

MIRROR = "http://deb.example/debian"


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as /etc/apt is, which names no mirror yet."""
    monkeypatch.delenv("TILESTACK_DEBIAN_MIRROR", raising=False)
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


DEB822 = f"""\
# URIs: http://commented.example/debian
Types: deb
URIs: http://security.example/debian-security/ http://archive.example/ubuntu
Suites: trixie-security

Types: deb deb-src
uris:\t{MIRROR}/
Suites: trixie trixie-updates
Components: main
"""
LINES = f"""\
# deb http://commented.example/debian trixie main
deb-src http://sources.example/debian trixie main
deb http://security.example/debian-security trixie-security main
deb http://archive.example/ubuntu noble main
deb [arch=amd64 signed-by=/usr/share/keyrings/x.gpg] {MIRROR} trixie main
deb http://later.example/debian sid main
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sources.list.d/debian.sources", DEB822),
        ("sources.list", LINES),
        ("sources.list.d/debian.list", LINES),
        ("sources.list", f"deb\t{MIRROR}/ trixie main"),
    ],
)
def test_the_first_address_of_the_archive_itself(apt: Path, name: str, text: str):
    (apt / name).write_text(text)
    assert mirror(apt) == MIRROR


def test_what_the_user_named_is_before_apts(apt: Path, monkeypatch: pytest.MonkeyPatch):
    (apt / "sources.list").write_text(LINES)
    monkeypatch.setenv("TILESTACK_DEBIAN_MIRROR", "http://named.example/any/")
    assert mirror(apt) == "http://named.example/any"


@pytest.mark.parametrize("name", ["sources.list.d/old.list.save", "sources.list.d/debian.sources.disabled"])
def test_files_that_apt_ignores_are_ignored(apt: Path, name: str):
    (apt / name).write_text(f"deb http://old.example/debian sid main\nURIs: {MIRROR}\n")
    (apt / "sources.list.d/folder").mkdir()
    (apt / "sources.list.d/picture").write_bytes(b"\xff")
    with pytest.raises(ToolchainError, match="no Debian mirror"):
        mirror(apt)


def test_no_address_is_an_error_that_says_how_to_name_one(apt: Path):
    (apt / "sources.list").write_text("deb http://archive.example/ubuntu noble main\n")
    with pytest.raises(ToolchainError, match=rf"{apt} names none(.|\n)*TILESTACK_DEBIAN_MIRROR, as http://"):
        mirror(apt)
    with pytest.raises(ToolchainError, match="names none"):
        mirror(apt / "none")


def test_a_list_that_is_no_text_is_read_all_the_same(apt: Path):
    (apt / "sources.list").write_bytes(b"# caf\xe9\ndeb " + MIRROR.encode() + b" trixie main\n")
    assert mirror(apt) == MIRROR


def test_a_list_that_cannot_be_read_is_named(apt: Path):
    (apt / "sources.list").mkdir()  # as root may read any file
    with pytest.raises(ToolchainError, match=rf"{apt}/sources.list cannot be read(.|\n)*TILESTACK_DEBIAN_MIRROR"):
        mirror(apt)
